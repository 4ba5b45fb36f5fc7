import CLinux

/// A process that this one has started.
package final class ChildProcess {
    package let pid: pid_t
    private var ended: Ended?

    /// How it ended.
    package enum Ended: Equatable, CustomStringConvertible {
        case exited(Int32)
        case killed(signal: Int32)

        package var description: String {
            switch self {
            case .exited(let code): "it ended with exit code \(code)"
            case .killed(let signal): "signal \(signal) ended it"
            }
        }
    }

    /// Starts a program, with our standard streams and one more descriptor, all signals in their
    /// default state, and the environment given.
    ///
    /// - Parameters:
    ///   - arguments: with its name.
    ///   - descriptor: what it gets as `number`.
    package init(
        _ path: String, arguments: [String], environment: [String],
        descriptor: Int32, as number: Int32
    ) throws(MessageSocket.CallError) {
        keep_dead_children()
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, descriptor, number)
        posix_spawn_file_actions_addclosefrom_np(&actions, number + 1)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        var all = sigset_t()
        sigemptyset(&none)
        sigfillset(&all)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setsigdefault(&attributes, &all)
        posix_spawnattr_setflags(
            &attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
        var argv = arguments.map { strdup($0) } + [nil]
        var variables = environment.map { strdup($0) } + [nil]
        defer { for text in argv + variables { free(text) } }
        var pid = pid_t()
        let code = posix_spawn(&pid, path, &actions, &attributes, &argv, &variables)
        guard code == 0 else { throw MessageSocket.CallError(path, code) }
        self.pid = pid
    }

    /// How it ended; `nil` while it runs.
    package func check() -> Ended? {
        if let ended { return ended }
        var status: Int32 = 0
        guard waitpid(pid, &status, WNOHANG) == pid else { return nil }
        let signal = status & 0x7f
        ended = signal == 0 ? .exited(status >> 8 & 0xff) : .killed(signal: signal)
        return ended
    }

    /// Ends it, whatever it is doing.
    package func end() {
        guard check() == nil else { return }
        kill(pid, SIGKILL)
        // One that waits for a device does not end even then; it is not waited for.
        for _ in 0..<1000 where check() == nil { usleep(2000) }
        if ended == nil { ended = .killed(signal: SIGKILL) }
    }
}
