import ArgumentParser
import CLinux
import ConfigurationFile

/// The options that `run` and `check` share: a file, and what may be said on top of it or instead
/// of it.
struct ConfigurationOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The configuration file.",
            discussion: """
                No file is looked for when this is missing: the built-in defaults apply (forward \
                proxy on 127.0.0.1:8080, admin on 127.0.0.1:9090, loopback clients only).
                """,
            valueName: "file"))
    var config: String?

    @Option(
        help: ArgumentHelp(
            "Listen as a forward proxy here, instead of where the configuration says; repeatable.",
            valueName: "address:port"))
    var listen: [String] = []

    @Option(
        help: ArgumentHelp(
            "Listen at an address and send everything to one http or https origin; repeatable.",
            valueName: "address=url"))
    var reverse: [String] = []

    @Option(help: ArgumentHelp("Where metrics and health are.", valueName: "address:port"))
    var admin: String?

    @Option(
        help: ArgumentHelp(
            """
            Allow a destination that is refused by default (loopback, private, link-local, \
            metadata): a network or an address, or a host pattern for private networks; \
            repeatable.
            """, valueName: "destination"))
    var allowDestination: [String] = []

    @Option(
        help: ArgumentHelp(
            "Trust anchors, instead of those configured: `system` or a PEM file; repeatable.",
            valueName: "roots"))
    var roots: [String] = []

    @Option(
        help: ArgumentHelp(
            """
            Answer CONNECT to these hosts in their name, to serve what is in the tunnel: a host \
            pattern; repeatable. The authority is the configuration's, or else ca.pem and ca.key \
            in $XDG_STATE_HOME/pinfold (or ~/.local/state/pinfold), where `pinfold ca init` puts \
            them.
            """, valueName: "host"))
    var intercept: [String] = []

    @Option(help: ArgumentHelp("The folder of the cache's database.", valueName: "folder"))
    var cachePath: String?

    @Option(help: ArgumentHelp("Threads with a loop each: a number, or auto.", valueName: "count"))
    var workers: String?

    /// What the options say, free of the parser.
    var source: ConfigurationSource {
        var overlay = CommandLineOverlay()
        overlay.listen = listen
        overlay.reverse = reverse
        overlay.admin = admin
        overlay.allowDestination = allowDestination
        overlay.roots = roots
        overlay.intercept = intercept
        overlay.cachePath = cachePath
        overlay.workers = workers
        return ConfigurationSource(file: config, overlay: overlay)
    }

    /// The configuration for a command: errors go to standard error, one line each, and the exit
    /// code is 1.
    func loadOrExit() throws -> LoadedConfiguration {
        do {
            return try source.load()
        } catch {
            writeToStandardError(error.description + "\n")
            throw ExitCode(1)
        }
    }
}

/// A file or the built-in defaults, and what the command line says on top: where a configuration
/// comes from at the start and at every reload.
struct ConfigurationSource: Sendable {
    /// The configuration file, or nil for the built-in defaults.
    var file: String?
    var overlay: CommandLineOverlay

    /// Reads and checks the configuration as it is now.
    func load() throws(ConfigurationErrors) -> LoadedConfiguration {
        try ConfigurationLoader(environment: .ofProcess()).load(file: file, overlay: overlay)
    }
}

/// Writes a text to standard error, all of it if somebody reads it: with a pipe that nobody reads
/// the program must still come to its end.
func writeToStandardError(_ text: String) {
    write(Array(text.utf8)[...], to: STDERR_FILENO, patienceMilliseconds: 1000)
}

/// Writes a text to standard output, all of it.
func writeToStandardOutput(_ text: String) {
    write(Array(text.utf8)[...], to: STDOUT_FILENO)
}

/// Writes bytes to standard output, all of them.
func writeToStandardOutput(_ bytes: [UInt8]) {
    write(bytes[...], to: STDOUT_FILENO)
}

/// What a pipe that is writable takes without blocking (pipe(7), PIPE_BUF).
private let pipeBytes = 4096

/// - Parameter patienceMilliseconds: how long the bytes may wait for its reader; nil: for ever.
private func write(
    _ bytes: ArraySlice<UInt8>, to descriptor: Int32, patienceMilliseconds: Int32? = nil
) {
    var rest = bytes
    while !rest.isEmpty {
        if let patienceMilliseconds {
            var state = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            guard poll(&state, 1, patienceMilliseconds) > 0 else { return }
        }
        let written = rest.withUnsafeBytes {
            CLinux.write(descriptor, $0.baseAddress, min($0.count, pipeBytes))
        }
        if written < 0, __errno_location().pointee == EINTR { continue }
        // Nobody reads: there is nobody left to tell.
        guard written > 0 else { return }
        rest = rest.dropFirst(written)
    }
}

/// What can be read of standard input, empty at its end. Where it cannot be read, the program
/// ends with 2.
func readStandardInput() -> [UInt8] {
    let step = 256 << 10
    while true {
        var failure: Int32 = 0
        let chunk = [UInt8](unsafeUninitializedCapacity: step) { buffer, count in
            let result = read(STDIN_FILENO, buffer.baseAddress, step)
            if result < 0 { failure = __errno_location().pointee }
            count = max(0, result)
        }
        if failure == EINTR { continue }
        guard failure == 0 else {
            writeToStandardError("pinfold: standard input cannot be read\n")
            exit(2)
        }
        return chunk
    }
}
