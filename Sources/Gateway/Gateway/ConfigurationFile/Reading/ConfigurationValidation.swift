import Trust

/// The shared state of the checks of one configuration: the environment, and the errors and
/// warnings found so far.
///
/// Used by one thread, during one load.
final class ConfigurationValidation {
    /// The maximum number of errors that are kept. A file with more is not worth checking further.
    static let maximumErrors = 200
    /// The maximum number of warnings that are kept.
    static let maximumWarnings = 200

    let environment: ConfigurationEnvironment
    /// The absolute path of the folder that the file's relative paths are relative to.
    let folder: String
    /// Lists of logs that have been read, by their paths: several entries may name one.
    var logLists: [String: Result<TransparencyLogList, LogListError>] = [:]
    private(set) var errors: [ConfigurationError] = []
    private var warnings: [ConfigurationWarning] = []

    init(environment: ConfigurationEnvironment, folder: String) {
        self.environment = environment
        self.folder = folder
    }

    /// Records an error; the checks continue.
    func report(
        _ origin: ConfigurationError.Origin, _ key: String, _ problem: String, expected: String
    ) {
        guard errors.count < Self.maximumErrors else { return }
        errors.append(
            ConfigurationError(origin: origin, key: key, problem: problem, expected: expected))
    }

    /// Records a warning: a valid setting that probably does not have the intended effect.
    func warn(_ origin: ConfigurationError.Origin, _ key: String, _ text: String) {
        guard warnings.count < Self.maximumWarnings else { return }
        warnings.append(ConfigurationWarning(origin: origin, key: key, text: text))
    }

    /// The errors in the order of the file, followed by those about options.
    var sortedErrors: [ConfigurationError] { Self.sorted(errors, by: \.origin) }

    /// The warnings in the order of the file, followed by those about options.
    var sortedWarnings: [ConfigurationWarning] { Self.sorted(warnings, by: \.origin) }

    private static func sorted<Finding>(
        _ findings: [Finding], by origin: KeyPath<Finding, ConfigurationError.Origin>
    ) -> [Finding] {
        func line(_ finding: Finding) -> Int { finding[keyPath: origin].line ?? .max }
        return findings.enumerated()
            .sorted { (line($0.element), $0.offset) < (line($1.element), $1.offset) }
            .map(\.element)
    }

    /// Makes a path absolute. `~` is the home folder. A relative path is relative to the file's
    /// folder if it was written in the file, and to the working folder if it is from an option.
    func path(_ text: String, writtenIn origin: ConfigurationError.Origin) -> String? {
        if text == "~" || text.hasPrefix("~/") {
            guard let home = environment.homeFolder else { return nil }
            return ConfigurationFiles.absolute("." + text.dropFirst(), in: home)
        }
        switch origin {
        case .file: return ConfigurationFiles.absolute(text, in: folder)
        case .option, .builtIn:
            return ConfigurationFiles.absolute(text, in: environment.workingFolder)
        }
    }
}
