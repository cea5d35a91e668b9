"""Outputs: whole or not at all, links followed, permissions kept, devices never replaced."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

import taufit.core.files
from taufit.core.errors import TaufitError
from taufit.core.file_lock import lock_file
from taufit.core.files import is_stream, replace_file, write_text
from taufit.core.process_cleanup import remove_registered

ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def umask():
    before = os.umask(0o022)

    def change(value: int) -> None:
        os.umask(value)

    yield change
    os.umask(before)


def test_a_text_is_written_and_nothing_else_is_left(tmp_path):
    write_text(tmp_path / "a.txt", "new\n")
    assert (tmp_path / "a.txt").read_text() == "new\n"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_the_old_file_survives_an_error_in_the_block(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")
    with pytest.raises(RuntimeError), replace_file(target) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert target.read_text() == "old" and os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("value", [0o022, 0o077, 0o002])
def test_a_new_file_gets_the_mode_the_umask_leaves(tmp_path, umask, value):
    umask(value)
    write_text(tmp_path / "a.txt", "x")
    assert mode(tmp_path / "a.txt") == 0o666 & ~value


@pytest.mark.parametrize("kept", [0o600, 0o644, 0o666, 0o640])
def test_a_replaced_file_keeps_its_mode(tmp_path, umask, kept):
    target = tmp_path / "a.txt"
    target.write_text("old")
    target.chmod(kept)
    write_text(target, "new")
    assert mode(target) == kept and target.read_text() == "new"


def test_a_private_file_is_private_while_it_is_written(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")
    target.chmod(0o600)
    with replace_file(target) as temporary:
        temporary.write_text("secret")
        assert mode(temporary.parent) == 0o700


def test_links_are_followed_and_stay_links(tmp_path):
    real, link, far = tmp_path / "real.txt", tmp_path / "link.txt", tmp_path / "far.txt"
    real.write_text("old")
    link.symlink_to("real.txt")
    far.symlink_to(link)
    write_text(far, "new")
    assert link.is_symlink() and far.is_symlink() and real.read_text() == "new"


def test_a_link_to_nothing_makes_its_target(tmp_path):
    (tmp_path / "link.txt").symlink_to("real.txt")
    write_text(tmp_path / "link.txt", "new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"


def test_a_link_to_itself_is_refused(tmp_path):
    (tmp_path / "loop.txt").symlink_to("loop.txt")
    with pytest.raises(TaufitError, match=r"loop\.txt cannot be written"):
        write_text(tmp_path / "loop.txt", "new")


@pytest.mark.parametrize("length", [1, 200, 245, 255])
def test_names_up_to_the_limit_of_the_file_system_are_written(tmp_path, length):
    target = tmp_path / ("n" * length)
    write_text(target, "x")
    write_text(target, "y")
    assert target.read_text() == "y"


def test_a_name_beyond_the_limit_is_refused_in_one_sentence(tmp_path):
    with pytest.raises(TaufitError, match=f"cannot be written: {os.strerror(36)}"):
        write_text(tmp_path / ("n" * 256), "x")
    assert os.listdir(tmp_path) == []


def test_a_pipe_is_written_through(tmp_path):
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()))
    reader.start()
    write_text(pipe, "through\n" * 100_000)
    reader.join(20)
    assert got == ["through\n" * 100_000]
    assert stat.S_ISFIFO(pipe.stat().st_mode) and is_stream(pipe)


def test_devices_are_written_through_and_stay_devices():
    before = os.stat(os.devnull)
    write_text(os.devnull, "nowhere")
    after = os.stat(os.devnull)
    assert stat.S_ISCHR(after.st_mode) and after.st_ino == before.st_ino
    assert after.st_rdev == before.st_rdev


def test_a_link_to_a_device_is_the_device(tmp_path):
    link = tmp_path / "link.json"
    link.symlink_to(os.devnull)
    write_text(link, "nowhere")
    assert link.is_symlink() and stat.S_ISCHR(os.stat(link).st_mode)


@pytest.mark.parametrize("name", ["/dev/taufit-no-such-device", "/proc/taufit", "/sys/taufit"])
def test_the_systems_directories_get_no_files(name):
    with pytest.raises(TaufitError, match="cannot be written"):
        write_text(name, "x")
    assert not os.path.exists(name)


def test_a_full_device_is_an_error_of_one_sentence():
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    with pytest.raises(TaufitError, match="/dev/full cannot be written: No space left on device"):
        write_text("/dev/full", "x")


def test_an_open_descriptor_is_written_at_its_own_place(tmp_path):
    with (tmp_path / "log").open("w") as file:
        file.write("before ")
        file.flush()
        write_text(f"/dev/fd/{file.fileno()}", "through ")
        file.write("after")
    assert (tmp_path / "log").read_text() == "before through after"


def test_directories_and_files_in_the_way_are_refused(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    with pytest.raises(TaufitError, match="it is a directory"):
        write_text(tmp_path / "folder", "x")
    with pytest.raises(TaufitError, match="cannot be written"):
        write_text(tmp_path / "file" / "below.txt", "x")


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path):
    code = (
        "import os, signal, sys\n"
        "from taufit.core.files import replace_file\n"
        "with replace_file(sys.argv[1]) as t:\n"
        "    t.write_text('half')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    target = tmp_path / "a.txt"
    ran = subprocess.run([sys.executable, "-c", code, target], check=False)
    assert ran.returncode == -signal.SIGKILL
    assert len(os.listdir(tmp_path)) == 1 and not target.exists()
    write_text(target, "whole")
    assert os.listdir(tmp_path) == ["a.txt"]


def test_what_a_running_process_has_under_way_is_left_alone(tmp_path):
    with replace_file(tmp_path / "a.txt") as first:
        first.write_text("slow")
        script = (
            "import sys; from taufit.core.files import write_text; write_text(sys.argv[1], 'x')"
        )
        subprocess.run([sys.executable, "-c", script, tmp_path / "b.txt"], check=True)
        assert first.exists()
    assert sorted(os.listdir(tmp_path)) == ["a.txt", "b.txt"]
    assert (tmp_path / "a.txt").read_text() == "slow"


def test_discarding_removes_only_what_is_under_way(tmp_path):
    (tmp_path / "kept.txt").write_text("kept")
    with pytest.raises(TaufitError), replace_file(tmp_path / "a.txt") as temporary:
        temporary.write_text("half")
        remove_registered()
        assert os.listdir(tmp_path) == ["kept.txt"]
    assert os.listdir(tmp_path) == ["kept.txt"]


def test_file_and_directory_are_flushed_before_and_after_the_rename(tmp_path, monkeypatch):
    events = []
    fsync, rename = os.fsync, os.replace

    def seen(handle):
        events.append("directory" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        fsync(handle)

    def renamed(*names):
        events.append("rename")
        rename(*names)

    monkeypatch.setattr(taufit.core.files.os, "fsync", seen)
    monkeypatch.setattr(taufit.core.files.os, "replace", renamed)
    write_text(tmp_path / "a.txt", "x")
    assert events == ["file", "rename", "directory"]


def test_a_lock_follows_the_file_that_replaces_the_locked_one(tmp_path):
    """Adding one under the lock, from many threads of many processes, loses nothing."""
    target = tmp_path / "count"
    target.write_text("0")
    code = (
        "import sys\n"
        "from taufit.core.file_lock import lock_file\n"
        "from taufit.core.files import write_text\n"
        "for _ in range(25):\n"
        "    with lock_file(sys.argv[1]):\n"
        "        n = int(open(sys.argv[1]).read())\n"
        "        write_text(sys.argv[1], str(n + 1))\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, target]) for _ in range(4)]
    assert [process.wait(120) for process in running] == [0] * 4
    assert target.read_text() == "100"
    with lock_file(target):
        assert os.listdir(tmp_path) == ["count"]


def as_nobody(work) -> str:
    """What `work` says as the user nobody: "" where it succeeds, else its error.

    In a fork, because the interpreter itself need not be readable to that user.
    """
    import pwd

    nobody = pwd.getpwnam("nobody")
    read, write = os.pipe()
    child = os.fork()
    if not child:
        said = "not done"
        try:
            os.setgroups([])
            os.setgid(nobody.pw_gid)
            os.setuid(nobody.pw_uid)
            os.chdir("/")
            work()
            said = ""
        except TaufitError as error:
            said = str(error)
        except BaseException as error:
            said = repr(error)
        finally:
            os.write(write, said.encode())
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said


@pytest.fixture
def home():
    """A directory of the user nobody; pytest's own are closed to other users."""
    with tempfile.TemporaryDirectory(prefix="nobody") as name:
        home = Path(name)
        home.chmod(0o755)
        os.chown(home, 65534, 65534)
        yield home


@pytest.mark.skipif(not ROOT, reason="only root can become another user")
def test_an_ordinary_user_is_refused_where_permissions_say_so(home):
    (home / "roots.txt").write_text("root's")
    (home / "locked").mkdir(mode=0o555)
    (home / "closed").mkdir(mode=0o700)
    for name in ("roots.txt", "locked/a.txt", "closed/a.txt", "locked/deep/a.txt"):
        said = as_nobody(lambda name=name: write_text(home / name, "new"))
        assert said == f"{home / name} cannot be written: Permission denied."
    assert (home / "roots.txt").read_text() == "root's"
    assert sorted(os.listdir(home)) == ["closed", "locked", "roots.txt"]
    assert os.listdir(home / "locked") == os.listdir(home / "closed") == []


@pytest.mark.skipif(not ROOT, reason="only root can become another user")
def test_an_ordinary_user_writes_own_files_links_and_devices(home):
    for name in ("own.txt", "real.txt"):
        (home / name).write_text("old")
        (home / name).chmod(0o600)
        os.chown(home / name, 65534, 65534)
    (home / "link.txt").symlink_to("real.txt")
    for target in (home / "own.txt", home / "link.txt", home / "new.txt", Path(os.devnull)):
        assert as_nobody(lambda target=target: write_text(target, "new")) == ""
    assert (home / "own.txt").read_text() == "new" == (home / "real.txt").read_text()
    assert mode(home / "own.txt") == mode(home / "real.txt") == 0o600
    assert (home / "link.txt").is_symlink()
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    assert sorted(os.listdir(home)) == ["link.txt", "new.txt", "own.txt", "real.txt"]


@pytest.mark.skipif(not ROOT, reason="only root can replace other users' files")
def test_root_leaves_a_users_file_to_that_user(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")
    os.chown(target, 65534, 65534)
    target.chmod(0o640)
    write_text(target, "new")
    status = target.stat()
    assert (status.st_uid, status.st_gid, mode(target)) == (65534, 65534, 0o640)
