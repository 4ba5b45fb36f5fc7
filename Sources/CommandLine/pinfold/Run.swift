import ArgumentParser
import CLinux
import Gateway

/// `pinfold run`: runs the gateway in the foreground until a signal ends it.
struct Run: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run the gateway in the foreground.",
        discussion: """
            SIGTERM and SIGINT end the gateway when the requests in progress are finished, or \
            after `timeouts.grace`; a second signal ends it at once. SIGHUP reloads the \
            configuration. SIGUSR1 reopens the access log. Exits with 0 after a signal, and with 1 \
            if the configuration is invalid, the gateway cannot start or a worker thread does not \
            stop in time.
            """)

    @OptionGroup var options: ConfigurationOptions

    func run() throws {
        Self.boundHeaps()
        let loaded = try options.loadOrExit()
        let source = options.source
        let gateway = GatewayProcess(
            loaded: loaded, version: pinfoldVersion, revision: Revision.commit,
            file: options.config,
            load: { (lists) throws(ConfigurationErrors) in try source.load(lists: lists) })
        do {
            let code = try gateway.run()
            if code != 0 { throw ExitCode(code) }
        } catch let error as ExitCode {
            throw error
        } catch {
            writeError("\(error)")
            throw ExitCode(1)
        }
    }

    /// Makes all threads share two malloc arenas. By default there are up to eight per core, and
    /// each keeps the memory that bodies in flight once needed: eight workers with 64 large
    /// concurrent transfers took 155 to 180 MiB. With two arenas they take 120 to 150 MiB, at no
    /// measurable cost in time, because small blocks are cached per thread and buffers are pooled
    /// per worker. `MALLOC_ARENA_MAX` in the environment takes precedence.
    private static func boundHeaps() {
        if getenv("MALLOC_ARENA_MAX") == nil { _ = mallopt(M_ARENA_MAX, 2) }
    }
}
