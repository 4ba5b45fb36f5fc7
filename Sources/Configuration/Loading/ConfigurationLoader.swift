/// Reads, checks and completes configurations.
package struct ConfigurationLoader: Sendable {
    /// What the surroundings say: home folder, state folder, working folder, cores.
    package var environment: ConfigurationEnvironment

    /// A loader for the given surroundings.
    package init(environment: ConfigurationEnvironment) {
        self.environment = environment
    }

    /// Loads a file, or the built-in defaults, with the command line's options on top.
    /// - Parameters:
    ///   - file: The configuration file's path, or nil for the built-in defaults.
    ///   - overlay: The options given on the command line.
    /// - Throws: Everything that is wrong, not only the first.
    package func load(
        file: String?, overlay: CommandLineOverlay = CommandLineOverlay()
    ) throws(ConfigurationErrors) -> ConfigurationSnapshot {
        throw ConfigurationErrors(errors: [])
    }
}

/// What the process's surroundings contribute to a configuration.
package struct ConfigurationEnvironment: Sendable, Equatable {
    /// The user's home folder, for `~`; nil when there is none.
    package var homeFolder: String?
    /// `XDG_STATE_HOME`, or nil.
    package var stateFolder: String?
    /// The working folder, which relative paths of options are relative to.
    package var workingFolder: String
    /// The number of online cores, for `workers: auto`.
    package var onlineCores: Int

    /// The given surroundings.
    package init(
        homeFolder: String?, stateFolder: String?, workingFolder: String, onlineCores: Int
    ) {
        self.homeFolder = homeFolder
        self.stateFolder = stateFolder
        self.workingFolder = workingFolder
        self.onlineCores = onlineCores
    }
}

/// The few things that the command line may say on top of a file or instead of one.
package struct CommandLineOverlay: Sendable, Equatable {
    /// `--listen`: replaces all forward listeners.
    package var listen: [String] = []
    /// `--reverse ADDRESS=URL`: adds a reverse listener, or replaces the one at that address.
    package var reverse: [String] = []
    /// `--admin`: replaces `admin.address`.
    package var admin: String?
    /// `--allow-destination`: adds to `access.destinations.allow`.
    package var allowDestination: [String] = []
    /// `--roots`: replaces `tls.roots`.
    package var roots: [String] = []
    /// `--cache-path`: replaces `cache.path`.
    package var cachePath: String?
    /// `--workers`: replaces `workers`.
    package var workers: String?

    /// No options.
    package init() {}
}
