"""URScript: what programs mean, and what they cannot do."""

from __future__ import annotations

import time

import pytest

from taufit.virtual.urscript import ScriptError, is_complete, load_program
from taufit.virtual.urscript.machine import BUDGET, Builtin


class Tape:
    """Functions that write down what a program does."""

    def __init__(self):
        self.out = []
        self.ticks = 0

        def sync():
            yield

        def sleep(t):
            for _ in range(max(1, round(t / 0.002))):
                yield

        self.functions = {
            "put": Builtin(lambda *x: self.out.append(x if len(x) > 1 else x[0])),
            "sync": Builtin(sync, waits=True),
            "sleep": Builtin(sleep, waits=True),
            "sin": Builtin(lambda x: __import__("math").sin(x)),
            "heavy": Builtin(lambda: 1, cost=200),
        }

    def run(self, program, ticks=2000):
        machine = load_program(program, self.functions)
        for self.ticks in range(1, ticks + 1):
            if not machine.tick():
                break
        return self.out


def run(program, ticks=2000):
    return Tape().run(program, ticks)


def test_line_ends_do_not_end_statements():
    text = "def f():\n global a = # comment\n0   global b = 2 global c =\n\n a + b put(a)"
    text += " put(b + c)\nend"
    assert run(text) == [0, 4]


def test_expressions():
    assert run("put(1 + 2 * 3) put((1 + 2) * 3) put(7 % 4) put(6 / 3) put(1 / 2) put(-2 * -3)") == [
        7,
        9,
        3,
        2,
        0.5,
        6,
    ]
    assert run("put(1 < 2 and not 3 < 2) put(False or 1 >= 1) put(True xor True)") == [
        True,
        True,
        False,
    ]
    assert run("x = [1, 2, 3] put(x[2]) put(x * 2) put([1, 2] + [3, 4]) put(p[0,0,1,0,0,0])") == [
        3,
        [2, 4, 6],
        [4, 6],
        [0, 0, 1, 0, 0, 0],
    ]


def test_p_is_a_pose_with_six_numbers_and_a_name_with_one():
    text = "def main():\n def first(p):\n  return p[0]\n end\n put(first([7, 8]))\nend"
    assert run(text) == [7]


def test_lists_are_values():
    assert run("a = [1, 2] b = a b[0] = 9 put(a) put(b)") == [[1, 2], [9, 2]]
    text = "def main():\n def f(x):\n x[0] = 5\n return x\n end\n a = [1] put(f(a)) put(a)\nend"
    assert run(text) == [[5], [1]]
    assert run("m = [[1, 2], [3, 4]] m[1, 0] = 7 put(m[1]) put(m[0, 1])") == [[7, 4], 2]


def test_blocks():
    text = """
i = 0
while True:
  i = i + 1
  if i == 2:
    continue
  elif i > 4:
    break
  else:
    put(i)
  end
end
"""
    assert run(text) == [1, 3, 4]


def test_functions_have_defaults_names_and_scopes():
    text = """
def program():
  global g = 1
  def add(a, b=10):
    local g = 100
    c = a + b + g
    return c
  end
  put(add(1)) put(add(1, b=2)) put(g)
end
"""
    assert run(text) == [111, 103, 1]


def test_a_lone_definition_is_the_program_and_a_call_after_it_too():
    assert run("def f():\n put(1)\nend\n") == [1]
    assert run("def f():\n put(1)\nend\nf()\nf()\n") == [1, 1]


def test_threads_share_the_steps_and_the_globals():
    text = """
def program():
  global n = 0
  thread counter():
    while True:
      n = n + 1
      sync()
    end
  end
  h = run counter()
  sleep(0.02)
  put(n)
  kill h
  m = n
  sleep(0.02)
  put(n - m)
  kill 0
  kill h
  put(7)
end
"""
    first, after, last = run(text)
    # Ten steps of sleep: the thread starts in the step that started it or in the next.
    assert first in (9, 10) and after == 0 and last == 7


def test_a_critical_section_spans_waiting_calls():
    text = """
def program():
  global order = 0
  thread other():
    order = order + 1
  end
  enter_critical
  run other()
  sleep(0.01)
  put(order)
  exit_critical
  sync()
  sync()
  put(order)
end
"""
    assert run(text) == [0, 1]


def test_join_waits_and_the_end_of_the_program_ends_its_threads():
    text = """
def program():
  thread worker():
    sleep(0.01)
    put(1)
  end
  join run worker()
  put(2)
  run worker()
end
"""
    waits = "def f():\n sync()\n return 1\nend\njoin f()"
    with pytest.raises(ScriptError, match="takes time"):
        run(waits)
    assert run(text) == [1, 2]


def test_halt_ends_everything():
    assert run("put(1) halt put(2)") == [1]


def test_a_loop_that_never_waits_cannot_hold_the_clock():
    tape = Tape()
    machine = load_program(
        "i = 0 while True:\n i = i + 1\n if i > 2000000000:\n i = 0\n end\nend", tape.functions
    )
    cpu = time.process_time()
    for _ in range(50):
        assert machine.tick()
    assert (time.process_time() - cpu) / 50 < 0.05
    assert 0 < machine.variables["i"] <= 50 * BUDGET


@pytest.mark.parametrize(
    "text",
    [
        "def f(n):\n return f(n + 1) + f(n + 1)\nend\nf(0)",
        "def a():\n b()\n b()\nend\ndef b():\n a()\nend\na()",
        "x = [1] while True:\n x = [x, x]\nend",
        "i = 3 while True:\n i = i * i\nend",
        "def w():\n while True:\n sync()\n end\nend\nwhile True:\n run w()\nend",
        "s = heavy() " + "+ heavy()" * 190 + "\n" + "put([" + ",".join(["heavy()"] * 5000) + "])",
    ],
)
def test_programs_that_would_eat_the_machine_are_stopped(text):
    tape = Tape()
    cpu = time.process_time()
    with pytest.raises(ScriptError):
        tape.run(text, ticks=5000)
    assert time.process_time() - cpu < 20


def test_branching_calls_are_spread_over_steps():
    depth = 14
    text = "".join(f"def f{i}():\n f{i + 1}()\n f{i + 1}()\nend\n" for i in range(depth))
    text += f"def f{depth}():\n put(1)\nend\nf0()\n"
    tape = Tape()
    machine = load_program(text, tape.functions)
    worst = 0
    for _ in range(100000):
        before = len(tape.out)
        if not machine.tick():
            break
        worst = max(worst, len(tape.out) - before)
    assert len(tape.out) == 2**depth and worst <= BUDGET


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("spin_fast(3)", r"spin_fast\(\) is not a function"),
        ("__import__('os')", r"__import__\(\) is not a function"),
        ("x = ().__class__", "cannot be read|out of place"),
        ("put(open)", "open has no value yet"),
        ("put(x)", "x has no value yet"),
        ("x = 1 x[0] = 2", "is not a list"),
        ("x = [1] put(x[1])", "element 1 of a list of 1"),
        ("put(1 / 0)", "division by zero"),
        ("if 1:\nput(1)", "inside a block"),
        ("end", "out of place"),
        ("put(1", "expected|out of place"),
        ("3 = x", "assigned to"),
        ("x = 1 < [2]", "no meaning"),
        ('while "a":\nend', "true or false"),
        ("put(" + "(" * 100 + "1" + ")" * 100 + ")", "nested more than"),
        ("def put():\nend\nput()", "function of the controller already"),
        ("run nothing()", "no thread nothing"),
        ("sync(1)", r"sync\(\)"),
        ("def f(a):\nreturn a\nend\nput(f())", r"f\(\) takes a"),
        ("x = 99999 * 99999", "32 bits"),
        ("put(x.y)", "cannot be read"),
        ("\x00", "cannot be read"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text, says):
    with pytest.raises(ScriptError, match=says):
        run(text)


def test_a_program_that_arrives_in_pieces_is_complete_when_its_blocks_are():
    text = 'def f():\n  if True: # end\n    textmsg("end")\n  end\n  while False:\n  end\nend\n'
    for k in range(1, len(text)):
        assert not is_complete(text[:k]), text[:k]
    assert is_complete(text)
    assert is_complete("stopj(2)\n")
