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
            let validation = ConfigurationValidation(
                environment: environment, folder: environment.workingFolder)
            let nothing = ConfigNode(origin: .builtIn, content: .null)
            return try check(nothing, overlay: overlay, validation: validation)
        }
        return try load(
            SourceFiles(file, environment: environment), name: file, overlay: overlay)
    }

    /// Loads a configuration from the text of a file.
    /// - Parameters:
    ///   - text: YAML in UTF-8.
    ///   - name: The file's path, as for ``load(file:overlay:)``; it need not exist.
    ///   - overlay: The options given on the command line.
    package func load(
        text: [UInt8], name: String, overlay: CommandLineOverlay = CommandLineOverlay()
    ) throws(ConfigurationErrors) -> LoadedConfiguration {
        try load(
            SourceFiles(name, text: text, environment: environment), name: name, overlay: overlay)
    }

    private func load(
        _ sources: SourceFiles, name: String, overlay: CommandLineOverlay
    ) throws(ConfigurationErrors) -> LoadedConfiguration {
        let validation = try validation(sources, name: name)
        let root = try expanded(sources.root, validation)
        var loaded = try check(root, overlay: overlay, validation: validation)
        loaded.hasIncludes = sources.hasIncludes
        return loaded
    }

    /// The files that a configuration names for the interception authority, or `nil` if it names
    /// none. The files need not exist yet, and the rest of the configuration is not checked.
    package func authorityPaths(
        file: String
    ) throws(ConfigurationErrors) -> (certificate: String, key: String)? {
        let root = try unchecked(file, section: .interception)
        guard let section = root.key(SectionName.interception.rawValue),
            let certificate = section.key("certificate")?.filePath(),
            let key = section.key("key")?.filePath()
        else { return nil }
        return (certificate, key)
    }

    /// One section of a file, with the values of variables; neither it nor the rest is checked.
    func unchecked(
        _ file: String, section name: SectionName
    ) throws(ConfigurationErrors) -> Field {
        let sources = try SourceFiles(file, environment: environment)
        let validation = try validation(sources, name: file)
        var section = sources.root
        if case .mapping(let entries) = section.content {
            section.content = .mapping(entries.filter { $0.key == name.rawValue })
        }
        return Field(node: try expanded(section, validation), path: "", validation: validation)
    }

    private func validation(
        _ sources: SourceFiles, name: String
    ) throws(ConfigurationErrors) -> ConfigurationValidation {
        let path = ConfigurationFiles.absolute(name, in: environment.workingFolder)
        let validation = ConfigurationValidation(
            environment: environment, folder: Folder.of(path))
        validation.inputs = sources.inputs
        validation.files = sources.inputs.files
        return validation
    }

    /// The document with the values of variables. Without one of them it is not checked any
    /// further.
    private func expanded(
        _ root: ConfigNode, _ validation: ConfigurationValidation
    ) throws(ConfigurationErrors) -> ConfigNode {
        var expansion = VariableExpansion(environment.variables)
        let root = expansion.expand(root, path: "")
        validation.add(expansion)
        try requireNoErrors(validation)
        return root
    }

    func requireNoErrors(
        _ validation: ConfigurationValidation
    ) throws(ConfigurationErrors) {
        let errors = validation.sortedErrors
        guard errors.isEmpty else {
            throw ConfigurationErrors(errors: errors, inputs: validation.inputs)
        }
    }

    private func check(
        _ document: ConfigNode, overlay: CommandLineOverlay, validation: ConfigurationValidation
    ) throws(ConfigurationErrors) -> LoadedConfiguration {
        var root = document
        overlay.apply(to: &root, validation: validation)
        return try adding(environment.policy, to: try local(root, validation))
    }

    /// What a document says by itself.
    func local(
        _ root: ConfigNode, _ validation: ConfigurationValidation
    ) throws(ConfigurationErrors) -> LocalConfiguration {
        var snapshot = SnapshotReader(validation: validation).snapshot(root)
        try requireNoErrors(validation)
        snapshot.variables = validation.variables(writtenIn: root)
        let loaded = LoadedConfiguration(
            snapshot: snapshot, warnings: validation.sortedWarnings, inputs: validation.inputs)
        return LocalConfiguration(
            root: root, environment: environment, folder: validation.folder,
            files: validation.files, loaded: loaded)
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
    /// The environment variables, for `${NAME}` and keys that name one. They may contain secrets.
    package var variables = EnvironmentVariables.fixed([:])
    /// The lists that are in force: they are used again where their files have not changed.
    package var lists: [AccessList] = []
    /// The policy that is added, if the configuration wants one; `nil` while there is none.
    package var policy: PolicyDocument?
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
