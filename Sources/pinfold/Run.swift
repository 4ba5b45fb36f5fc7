import ArgumentParser
import Configuration
import Gateway

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
        let source = options.source
        let gateway = GatewayProcess(
            configuration: snapshot, version: pinfoldVersion,
            load: { () throws(ConfigurationErrors) in try source.load() })
        do {
            let code = try gateway.run()
            if code != 0 { throw ExitCode(code) }
        } catch let error as ExitCode {
            throw error
        } catch {
            writeToStandardError("pinfold: \(error)\n")
            throw ExitCode(1)
        }
    }
}
