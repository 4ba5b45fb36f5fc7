import ArgumentParser
import CLinux
import Gateway
import PinfoldConfiguration
import Supervision

/// `pinfold run`: runs the gateway in the foreground until a signal ends it.
struct Run: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run the gateway in the foreground.",
        discussion: """
            SIGTERM and SIGINT end the gateway when the requests in progress are finished, or \
            after `timeouts.grace`; a second signal ends it at once. SIGHUP reloads the \
            configuration. SIGUSR1 reopens the access log. SIGUSR2 starts the program again, which \
            takes over without a lost connection (`pinfold upgrade`). Exits with 0 after a \
            signal, and with 1 if the configuration is invalid, the gateway cannot start or a \
            worker thread does not stop in time.
            """)

    @OptionGroup var options: ConfigurationOptions

    func run() throws {
        Self.boundHeaps()
        let invocation = Invocation.ofProcess(arguments: CommandLine.arguments)
        let predecessor = try Self.predecessor()
        let manager = Self.serviceManager()
        var source = options.source
        source.sockets = try predecessor?.passed.sockets ?? Self.passedSockets()
        let passed = source.sockets ?? []
        manager?.send([.status("starting: reading the configuration")])
        let loaded: LoadedConfiguration
        do throws(ConfigurationErrors) {
            loaded = try source.load()
        } catch {
            error.write()
            predecessor?.failed("the configuration is invalid: \(error)")
            manager?.send([.status("not started: the configuration is invalid")])
            throw ExitCode(1)
        }
        // The others are closed: a later configuration cannot use them.
        let names = loaded.snapshot.passedNames
        source.sockets = passed.filter { names.contains($0.name) }
        let gateway = GatewayProcess(
            loaded: loaded, version: pinfoldVersion, revision: Revision.commit,
            file: options.config, manager: manager, passed: passed,
            invocation: invocation, predecessor: predecessor,
            load: { [source] (lists) throws(ConfigurationErrors) in try source.load(lists: lists) })
        do {
            let code = try gateway.run()
            if code != 0 { throw ExitCode(code) }
        } catch let error as ExitCode {
            throw error
        } catch {
            writeError("\(error)")
            predecessor?.failed("\(error)")
            let code = (error as? ListenError)?.code
            manager?.send(
                [.status("not started: \(error)")] + (code.map { [.failed(errno: $0)] } ?? []))
            throw ExitCode(1)
        }
    }

    /// The service manager that started the process; `nil` if none did, or if it cannot be told
    /// anything.
    private static func serviceManager() -> ServiceManager? {
        do throws(NotificationAddress.ParseError) {
            return try ServiceManager.takeFromEnvironment()
        } catch {
            writeWarning(
                "NOTIFY_SOCKET is neither a path nor @ and a name, at most 107 bytes: the service "
                    + "manager is told nothing")
            return nil
        }
    }

    /// The gateway to take over from; `nil` if there is none.
    private static func predecessor() throws -> Predecessor? {
        do throws(Predecessor.TakeoverError) {
            return try Predecessor.takeFromEnvironment()
        } catch {
            writeError("\(error)")
            throw ExitCode(1)
        }
    }

    /// The sockets that the service manager passed.
    private static func passedSockets() throws -> [PassedSocket] {
        do throws(PassedDescriptors.ParseError) {
            return try PassedDescriptors.takeFromEnvironment().sockets
        } catch {
            writeError("the sockets from the service manager cannot be used: \(error)")
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
