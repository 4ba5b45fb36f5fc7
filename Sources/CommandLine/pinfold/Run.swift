import ArgumentParser
import CLinux
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
        Self.boundHeaps()
        let loaded = try options.loadOrExit()
        let source = options.source
        let gateway = GatewayProcess(
            loaded: loaded, version: pinfoldVersion, revision: Revision.commit,
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

    /// Lets all threads share two of malloc's heaps. By default there are up to eight per core, and
    /// each keeps what bodies in flight once needed: eight workers with 64 large transfers at once
    /// took 155 to 180 MiB so, and take 120 to 150 with two heaps, at no measurable cost in time
    /// (small blocks are cached by thread, buffers are pooled by worker). The environment's own
    /// setting has precedence.
    private static func boundHeaps() {
        if getenv("MALLOC_ARENA_MAX") == nil { _ = mallopt(M_ARENA_MAX, 2) }
    }
}
