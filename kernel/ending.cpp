// Ends a command whose C call never comes back to the interpreter, whoever holds its lock.
//
// A signal first starts an alarm and then does what Python installed. Where Python gets to run, the
// command ends in order, before the alarm. Where it does not (BLAS without memory, a kernel's loop),
// the alarm removes what the command has under way and leaves with 128 plus the signal's number.
// Everything here is async-signal-safe: no allocation, no locks, system calls only.
#include <nanobind/nanobind.h>

#if !defined(_WIN32)
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#if defined(__linux__)
#include <sys/syscall.h>
#endif

namespace {

constexpr int kMost = 64, kLongest = 4096, kDeepest = 8;
char paths[kMost][kLongest];
volatile sig_atomic_t used[kMost];
struct sigaction before[NSIG], before_alarm;
volatile sig_atomic_t guarded[NSIG];
volatile sig_atomic_t which = SIGTERM;
unsigned patience = 4;
pid_t owner = 0;

#if defined(__linux__)
struct Entry {  // as getdents64 writes it
    unsigned long long inode;
    long long offset;
    unsigned short length;
    unsigned char kind;
    char name[1];
};
alignas(Entry) char listed[kDeepest][kLongest];
#endif

void remove_tree(int folder, const char* name, int depth) {
    if (unlinkat(folder, name, 0) == 0) return;
#if defined(__linux__)
    const int inside = depth < kDeepest
        ? openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (inside >= 0) {
        for (;;) {
            const long size = syscall(SYS_getdents64, inside, listed[depth], kLongest);
            if (size <= 0) break;
            for (long at = 0; at < size;) {
                const Entry* entry = reinterpret_cast<const Entry*>(listed[depth] + at);
                if (std::strcmp(entry->name, ".") != 0 && std::strcmp(entry->name, "..") != 0)
                    remove_tree(inside, entry->name, depth + 1);
                at += entry->length;
            }
        }
        close(inside);
    }
#endif
    unlinkat(folder, name, AT_REMOVEDIR);
}

void leave(int) {
    static const char words[] =
        "stopped inside a long computation; nothing half-written is left.\n";
    for (int i = 0; i < kMost; i++)
        if (used[i]) remove_tree(AT_FDCWD, paths[i], 0);
    if (write(2, words, sizeof words - 1) < 0) _exit(128 + which);
    _exit(128 + which);
}

void on_signal(int number, siginfo_t* about, void* context) {
    if (getpid() == owner) {  // a fork has nothing of its own under way
        which = number;
        alarm(patience);
    }
    const struct sigaction& other = before[number];
    if (other.sa_flags & SA_SIGINFO)
        other.sa_sigaction(number, about, context);
    else if (other.sa_handler != SIG_DFL && other.sa_handler != SIG_IGN)
        other.sa_handler(number);
}

void guard(int number, unsigned seconds) {
    if (number <= 0 || number >= NSIG || guarded[number]) return;
    owner = getpid();
    patience = seconds;
    struct sigaction late = {};
    late.sa_handler = leave;
    sigaction(SIGALRM, &late, before_alarm.sa_handler == leave ? nullptr : &before_alarm);
    struct sigaction now = {};
    now.sa_sigaction = on_signal;
    now.sa_flags = SA_SIGINFO;
    sigaction(number, nullptr, &before[number]);
    guarded[number] = 1;
    sigaction(number, &now, nullptr);
}

void release() {
    alarm(0);
    for (int number = 1; number < NSIG; number++) {
        if (!guarded[number]) continue;
        struct sigaction now = {};
        sigaction(number, nullptr, &now);
        // Another handler may have taken its place since.
        if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_signal)
            sigaction(number, &before[number], nullptr);
        guarded[number] = 0;
    }
    if (owner != 0) sigaction(SIGALRM, &before_alarm, nullptr);
    owner = 0;
}

int keep(const char* path) {
    if (std::strlen(path) >= kLongest) return -1;
    for (int i = 0; i < kMost; i++) {
        if (used[i]) continue;
        std::strcpy(paths[i], path);
        std::atomic_signal_fence(std::memory_order_seq_cst);
        used[i] = 1;
        return i;
    }
    return -1;
}

void drop(int i) {
    if (i >= 0 && i < kMost) used[i] = 0;
}

}  // namespace
#endif

void bind_ending(nanobind::module_& m) {
#if !defined(_WIN32)
    m.def("guard_signal", &guard, "Let a signal end this process after some seconds at the latest");
    m.def("release_signals", &release, "Undo every guard_signal");
    m.def("calm_alarm", [] { alarm(0); }, "Python runs: no alarm is needed");
    m.def("keep_path", &keep, "A file or folder to be removed by the alarm; its number, or -1");
    m.def("drop_path", &drop, "Forget a number of keep_path");
#else
    (void)m;
#endif
}
