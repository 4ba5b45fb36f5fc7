import ArgumentParser
import Gateway

/// The options that `run`, `check` and `explain` share: a configuration file, and settings that
/// override it or replace it.
struct ConfigurationOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The configuration file.",
            discussion: """
                Without this option no file is read and the built-in defaults apply (forward \
                proxy on 127.0.0.1:8080, admin on 127.0.0.1:9090, loopback clients only).
                """,
            valueName: "file"))
    var config: String?

    @Option(
        help: ArgumentHelp(
            "Listen here as a forward proxy, in place of the configured forward listeners; "
                + "repeatable.",
            valueName: "address:port"))
    var listen: [String] = []

    @Option(
        help: ArgumentHelp(
            "Listen on an address and send all requests to one http or https origin; repeatable.",
            valueName: "address=url"))
    var reverse: [String] = []

    @Option(
        help: ArgumentHelp(
            "Serve metrics and health checks on this address.", valueName: "address:port"))
    var admin: String?

    @Option(
        help: ArgumentHelp(
            """
            Allow a destination that is refused by default (loopback, private, link-local or \
            cloud metadata): a network, an address or, for private networks, a host pattern; \
            repeatable.
            """, valueName: "destination"))
    var allowDestination: [String] = []

    @Option(
        help: ArgumentHelp(
            "Trust these anchors instead of the configured ones: `system` or a PEM file; "
                + "repeatable.",
            valueName: "roots"))
    var roots: [String] = []

    @Option(
        help: ArgumentHelp(
            """
            Intercept CONNECT tunnels to hosts that match this pattern: answer in the host's name \
            and serve the requests inside; repeatable. Uses the configured certificate \
            authority, or else ca.pem and ca.key in $XDG_STATE_HOME/pinfold (or \
            ~/.local/state/pinfold), where `pinfold ca init` puts them.
            """, valueName: "host"))
    var intercept: [String] = []

    @Option(help: ArgumentHelp("The folder of the cache database.", valueName: "folder"))
    var cachePath: String?

    @Option(
        help: ArgumentHelp(
            "The number of worker threads, or auto for one per core.", valueName: "count"))
    var workers: String?

    /// The options as a value that does not depend on the parser.
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

    /// Loads the configuration. If that fails, prints one line per error to standard error and
    /// throws exit code 1.
    func loadOrExit() throws -> LoadedConfiguration {
        do {
            return try source.load()
        } catch {
            writeToStandardError(error.description + "\n")
            throw ExitCode(1)
        }
    }
}

/// Where a configuration comes from, at the start and at every reload: a file or the built-in
/// defaults, with the command line's options on top.
struct ConfigurationSource: Sendable {
    /// The configuration file, or `nil` for the built-in defaults.
    var file: String?
    var overlay: CommandLineOverlay

    /// Reads and checks the configuration in its current state.
    func load() throws(ConfigurationErrors) -> LoadedConfiguration {
        try ConfigurationLoader(environment: .ofProcess()).load(file: file, overlay: overlay)
    }
}
