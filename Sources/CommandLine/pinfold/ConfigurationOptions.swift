import ArgumentParser
import Gateway

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
