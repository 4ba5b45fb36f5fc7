import CLinux
import Clocks
import Files
import PinfoldConfiguration
import Supervision

/// Reads and checks configurations, and fills in the defaults.
package struct ConfigurationLoader: Sendable {
    /// The process's environment: home folder, state folder, working folder, cores.
    package var environment: ConfigurationEnvironment

    /// Creates a loader for an environment.
    package init(environment: ConfigurationEnvironment) {
        self.environment = environment
    }

    /// Loads a file, or the built-in defaults, with the command line's options on top.
    /// - Parameters:
    ///   - file: The configuration file's path, or `nil` for the built-in defaults. It is also the
    ///     name in errors, and relative paths in the file are relative to its folder.
    ///   - overlay: The options given on the command line.
    /// - Throws: All errors, not only the first.
    package func load(
        file: String?, overlay: CommandLineOverlay = CommandLineOverlay()
    ) throws(ConfigurationErrors) -> LoadedConfiguration {
        guard let file else {
            let nothing = ConfigNode(origin: .builtIn, content: .null)
            return try check(nothing, folder: environment.workingFolder, overlay: overlay)
        }
        let text: [UInt8]
        do {
            text = try ConfigurationFiles.readSettled(
                ConfigurationFiles.absolute(file, in: environment.workingFolder),
                limit: YAMLDocument.maximumBytes)
        } catch {
            throw ConfigurationErrors(errors: [
                ConfigurationError(
                    origin: .file(name: file, line: 0), key: "", problem: error.text,
                    expected: "a readable configuration file")
            ])
        }
        return try load(text: text, name: file, overlay: overlay)
    }

    /// The files that a configuration names for the interception authority, or `nil` if it names
    /// none. The files need not exist yet, and the rest of the configuration is not checked.
    package func authorityPaths(
        file: String
    ) throws(ConfigurationError) -> (certificate: String, key: String)? {
        let text: [UInt8]
        do {
            text = try ConfigurationFiles.readSettled(file, limit: YAMLDocument.maximumBytes)
        } catch {
            throw ConfigurationError(
                origin: .file(name: file, line: 0), key: "", problem: error.text,
                expected: "a readable configuration file")
        }
        let folder = Folder.of(ConfigurationFiles.absolute(file, in: environment.workingFolder))
        let validation = ConfigurationValidation(environment: environment, folder: folder)
        let root = Field(
            node: try YAMLDocument.parse(text, name: file), path: "", validation: validation)
        guard let section = root.key(SectionName.interception.rawValue),
            let certificate = section.key("certificate")?.filePath(),
            let key = section.key("key")?.filePath()
        else { return nil }
        return (certificate, key)
    }

    /// Loads a configuration from the text of a file.
    /// - Parameters:
    ///   - text: YAML in UTF-8.
    ///   - name: The file's path, as for ``load(file:overlay:)``; it need not exist.
    ///   - overlay: The options given on the command line.
    package func load(
        text: [UInt8], name: String, overlay: CommandLineOverlay = CommandLineOverlay()
    ) throws(ConfigurationErrors) -> LoadedConfiguration {
        let root: ConfigNode
        do {
            root = try YAMLDocument.parse(text, name: name)
        } catch {
            throw ConfigurationErrors(errors: [error])
        }
        if case .null = root.content { throw ConfigurationErrors(errors: [Self.empty(name)]) }
        let folder = Folder.of(ConfigurationFiles.absolute(name, in: environment.workingFolder))
        return try check(root, folder: folder, overlay: overlay)
    }

    /// The error for a file without any keys. Such a file is probably still being written, or is
    /// not the intended one. Loading it would remove every listener, pinset and rule.
    private static func empty(_ name: String) -> ConfigurationError {
        ConfigurationError(
            origin: .file(name: name, line: 0), key: "", problem: "has no keys",
            expected: "at least one key; for the built-in defaults, omit --config or write {}")
    }

    private func check(
        _ document: ConfigNode, folder: String, overlay: CommandLineOverlay
    ) throws(ConfigurationErrors) -> LoadedConfiguration {
        let validation = ConfigurationValidation(environment: environment, folder: folder)
        var root = document
        overlay.apply(to: &root, validation: validation)
        let snapshot = SnapshotReader(validation: validation).snapshot(root)
        let errors = validation.sortedErrors
        guard errors.isEmpty else { throw ConfigurationErrors(errors: errors) }
        return LoadedConfiguration(snapshot: snapshot, warnings: validation.sortedWarnings)
    }
}

/// The parts of the process's environment that a configuration depends on.
package struct ConfigurationEnvironment: Sendable, Equatable {
    /// The user's home folder, for `~`, or `nil` if there is none.
    package var homeFolder: String?
    /// The value of `XDG_STATE_HOME`, or `nil` if it is not set.
    package var stateFolder: String?
    /// The absolute working folder, which relative paths of options are relative to.
    package var workingFolder: String
    /// The number of cores that the process may use, for `workers: auto`.
    package var cores: Int
    /// The limit on the process's memory, in bytes, for sizes that are `auto`; `nil` for none.
    package var memoryLimit: Int?
    /// The sockets that the service manager passed to the process, for addresses that name them;
    /// `nil` where this is not the process that they are passed to.
    package var sockets: [PassedSocket]?
    /// Whether to check that the paths that the gateway writes to are writable.
    package var looksAtPaths = false
    /// How many files the process may open after raising its own limit, or `nil` if unknown.
    package var openFiles: Int?
    /// The environment variables that may contain secrets.
    package var variables = EnvironmentVariables.fixed([:])
    /// The lists that are in force: they are used again where their files have not changed.
    package var lists: [AccessList] = []
    /// The time at which certificates must be valid, in seconds since 1970.
    package var now = Clock.wallSeconds()

    /// The default folder for the gateway's data: `pinfold` in the state folder of the XDG Base
    /// Directory Specification, which is `XDG_STATE_HOME` if that is an absolute path, else
    /// `~/.local/state`. The result is `nil` without a home folder.
    package var dataFolder: String? {
        if let stateFolder, stateFolder.hasPrefix("/") {
            return ConfigurationFiles.absolute("pinfold", in: stateFolder)
        }
        return homeFolder.map { ConfigurationFiles.absolute(".local/state/pinfold", in: $0) }
    }

    /// The files of the authority that is used if none is configured: in the data folder or,
    /// without one, in the working folder.
    package var defaultAuthority: (certificate: String, key: String) {
        let folder = dataFolder ?? workingFolder
        return (
            ConfigurationFiles.absolute("ca.pem", in: folder),
            ConfigurationFiles.absolute("ca.key", in: folder)
        )
    }

    /// Creates an environment.
    package init(
        homeFolder: String?, stateFolder: String?, workingFolder: String, cores: Int
    ) {
        self.homeFolder = homeFolder
        self.stateFolder = stateFolder
        self.workingFolder = workingFolder
        self.cores = cores
    }

    /// The hard limit: the gateway raises the soft one to it.
    private static var openFilesOfProcess: Int? {
        var limit = rlimit()
        guard getrlimit(Int32(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return nil }
        return Int(clamping: limit.rlim_max)
    }

    /// The environment of this process: its environment variables, working folder, and what it may
    /// use of the machine.
    package static func ofProcess() -> ConfigurationEnvironment {
        func variable(_ name: String) -> String? {
            guard let value = getenv(name), value.pointee != 0 else { return nil }
            return String(cString: value)
        }
        let size = Int(PATH_MAX) + 1
        let folder = withUnsafeTemporaryAllocation(of: CChar.self, capacity: size) { buffer in
            getcwd(buffer.baseAddress, size).map { String(cString: $0) }
        }
        let share = MachineShare.ofProcess()
        var environment = ConfigurationEnvironment(
            homeFolder: variable("HOME"), stateFolder: variable("XDG_STATE_HOME"),
            workingFolder: folder ?? "/", cores: share.cores)
        environment.memoryLimit = share.memory?.bytes
        environment.looksAtPaths = true
        environment.openFiles = openFilesOfProcess
        environment.variables = .ofProcess
        return environment
    }
}
