import Authentication
import CLinux

/// Reads a new password: from a terminal without showing it, twice, or else from the first line of
/// standard input.
enum PasswordInput {
    static func read() throws -> [UInt8] {
        guard isatty(STDIN_FILENO) != 0, let terminal = SilentTerminal(STDIN_FILENO) else {
            return try checked(line() ?? [])
        }
        defer { terminal.end() }
        writeToStandardError("Password: ")
        let password = line(terminal) ?? []
        writeToStandardError("\nAgain: ")
        let again = line(terminal) ?? []
        writeToStandardError("\n")
        guard password == again else { throw CommandError("the passwords differ") }
        return try checked(password)
    }

    /// Asks for the password of a user once, on the terminal of the process, whose standard input
    /// may be content. Without a terminal, it is the next line of standard input.
    ///
    /// - Returns: `nil` if there is neither.
    static func ask(for user: Substring) -> String? {
        let own = open_with_mode("/dev/tty", O_RDWR | O_CLOEXEC, 0)
        defer { if own >= 0 { close(own) } }
        let descriptor = own >= 0 ? own : STDIN_FILENO
        guard let terminal = SilentTerminal(descriptor) else {
            return line().map { String(decoding: $0, as: UTF8.self) }
        }
        defer { terminal.end() }
        writeToStandardError("Password for \(user): ")
        let password = line(terminal)
        writeToStandardError("\n")
        return password.map { String(decoding: $0, as: UTF8.self) }
    }

    /// What a client can send by Basic (RFC 7617 §2), and is not empty.
    private static func checked(_ password: [UInt8]) throws -> [UInt8] {
        guard !password.isEmpty, password.count <= UserPassword.maximumPasswordBytes,
            password.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }),
            String(validating: password, as: UTF8.self) != nil
        else {
            throw CommandError(
                "the password is not usable; expected 1 to \(UserPassword.maximumPasswordBytes) "
                    + "bytes of UTF-8 without control characters")
        }
        return password
    }

    /// A line without its end, or `nil` at the end of the input. Byte by byte: what follows is for
    /// the next call.
    private static func line(_ terminal: SilentTerminal? = nil) -> [UInt8]? {
        var line: [UInt8] = []
        var byte: UInt8 = 0
        while line.count <= UserPassword.maximumPasswordBytes {
            terminal?.waitForInput()
            guard CLinux.read(terminal?.input ?? STDIN_FILENO, &byte, 1) == 1 else {
                if line.isEmpty { return nil }
                break
            }
            guard byte != 0x0A else { break }
            line.append(byte)
        }
        if line.last == 0x0D { line.removeLast() }
        return line
    }
}

/// A terminal while it does not show what is typed. Signals that end or stop
/// the process are held back until it shows that again, so that it is never left as it is now.
private struct SilentTerminal {
    let input: Int32
    private var before = termios()
    private let descriptor: Int32
    private static let signals = [SIGINT, SIGTERM, SIGQUIT, SIGHUP, SIGTSTP]

    /// - Returns: `nil` if there is no terminal.
    init?(_ input: Int32) {
        self.input = input
        guard tcgetattr(input, &before) == 0 else { return nil }
        var set = Self.set
        descriptor = signalfd(-1, &set, Int32(SFD_CLOEXEC))
        guard descriptor >= 0 else { return nil }
        begin()
    }

    private static var set: sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        for signal in signals { sigaddset(&set, signal) }
        return set
    }

    private func begin() {
        var set = Self.set
        sigprocmask(SIG_BLOCK, &set, nil)
        var silent = before
        silent.c_lflag &= ~tcflag_t(ECHO)
        tcsetattr(input, TCSAFLUSH, &silent)
    }

    private func restore() {
        var shown = before
        tcsetattr(input, TCSAFLUSH, &shown)
        // A signal that was held back does its work now.
        var set = Self.set
        sigprocmask(SIG_UNBLOCK, &set, nil)
    }

    func end() {
        restore()
        close(descriptor)
    }

    /// Waits until there is something to read. A signal ends or stops the process.
    func waitForInput() {
        while true {
            var waited = [
                pollfd(fd: input, events: Int16(POLLIN), revents: 0),
                pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
            ]
            guard poll(&waited, 2, -1) > 0 else { return }
            guard waited[1].revents != 0 else { return }
            restore()
            // It was stopped, and goes on.
            begin()
        }
    }
}
