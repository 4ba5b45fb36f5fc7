import ArgumentParser
import Configuration

/// `pinfold run`: the gateway in the foreground until a signal ends it.
struct Run: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run the gateway in the foreground.",
        discussion: """
            SIGTERM and SIGINT finish what is in flight and exit (a second SIGINT exits at once), \
            SIGHUP reloads the configuration, SIGUSR1 reopens the access log.
            """)

    @OptionGroup var options: ConfigurationOptions

    func run() throws {
        let snapshot = try options.loadOrExit()
        let options = options
        try GatewayProcess.run(
            configuration: snapshot,
            reload: { () throws(ConfigurationErrors) in try options.load() })
    }
}
