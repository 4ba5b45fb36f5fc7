import ArgumentParser
import Gateway
import PinfoldConfiguration

/// The options that `run`, `check` and `explain` share: a configuration file, and settings that
/// override it or replace it.
struct ConfigurationOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            """
            The configuration file. Without this option, no file is read, and the built-in \
            defaults apply: a forward proxy on 127.0.0.1:8080 for loopback clients only, and the \
            administration on 127.0.0.1:9090.
            """, valueName: "file"), completion: .file())
    var config: String?

    @Option(
        help: ArgumentHelp(
            "Listen on this address as a forward proxy, in place of the configured forward "
                + "listeners; repeatable.",
            valueName: "address:port"))
    var listen: [String] = []

    @Option(
        help: ArgumentHelp(
            "Listen on this address as a reverse proxy: send all requests to the server of this "
                + "http or https URL; repeatable.",
            valueName: "address=url"))
    var reverse: [String] = []

    @Option(
        help: ArgumentHelp(
            "Serve metrics and health checks on this address.", valueName: "address:port"))
    var admin: String?

    @Option(
        help: ArgumentHelp(
            """
            Allow a destination that is refused by default: a network, an address or a host \
            pattern; repeatable. Refused are loopback, link-local, private, shared (carrier-grade \
            NAT), unspecified, multicast, broadcast and reserved addresses, and those of clouds' \
            metadata services. A host pattern allows only private and shared addresses.
            """, valueName: "destination"))
    var allowDestination: [String] = []

    @Option(
        help: ArgumentHelp(
            "Trust these anchors instead of the configured ones: `system`, or a file of "
                + "certificates (PEM or DER); repeatable.",
            valueName: "roots"), completion: .file())
    var roots: [String] = []

    @Option(
        help: ArgumentHelp(
            """
            Intercept CONNECT tunnels to hosts that match this pattern: present a certificate for \
            the host, and serve the requests in the tunnel; repeatable. The certificates are \
            issued by the configured certificate authority or, if there is none, by that of \
            `pinfold ca init`: ca.pem and ca.key in $XDG_STATE_HOME/pinfold, or in \
            ~/.local/state/pinfold.
            """, valueName: "host"))
    var intercept: [String] = []

    @Option(
        help: ArgumentHelp("The directory of the cache database.", valueName: "directory"),
        completion: .directory)
    var cachePath: String?

    @Option(
        help: ArgumentHelp(
            "The number of worker threads, or `auto` for one per core that may be used.",
            valueName: "count"))
    var workers: String?

    /// Whether anything is to be different from what the configuration file says, besides the
    /// administrative address.
    var changesConfiguration: Bool {
        !(listen + reverse + allowDestination + roots + intercept).isEmpty || cachePath != nil
            || workers != nil
    }

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
    /// - Parameter policy: a file with a signed policy that is read with it.
    func loadOrExit(policy: String? = nil) throws -> LoadedConfiguration {
        var source = source
        source.policy = policy
        do throws(ConfigurationErrors) {
            return try source.load()
        } catch {
            error.write()
            throw ExitCode(1)
        }
    }
}

extension ConfigurationErrors {
    /// Writes one line per error to standard error.
    func write() { for error in errors { writeError(error.description) } }
}

/// What a command answers by. If that throws, there is no answer: the program says why, and exits
/// with 2.
func answerOrExit<Answer>(_ body: () throws -> Answer) throws -> Answer {
    do {
        return try body()
    } catch let errors as ConfigurationErrors {
        errors.write()
    } catch {
        writeError("\(error)")
    }
    throw ExitCode(2)
}

/// Where a configuration comes from, at the start and at every reload: a file or the built-in
/// defaults, with the command line's options on top.
struct ConfigurationSource: Sendable {
    /// The configuration file, or `nil` for the built-in defaults.
    var file: String?
    var overlay: CommandLineOverlay
    /// A file with a signed policy that is read with it; `nil` for none.
    var policy: String?
    /// The sockets that the service manager passed, or `nil` if this is not the process that it
    /// passes them to.
    var sockets: [PassedSocket]?

    /// Reads and checks the configuration in its current state.
    ///
    /// - Parameter lists: lists that are used again where their files have not changed.
    func load(lists: [AccessList] = []) throws(ConfigurationErrors) -> LoadedConfiguration {
        var environment = ConfigurationEnvironment.ofProcess()
        environment.lists = lists
        environment.sockets = sockets
        if let policy { environment.policy = try PolicyDocument(file: policy) }
        return try ConfigurationLoader(environment: environment).load(file: file, overlay: overlay)
    }
}
