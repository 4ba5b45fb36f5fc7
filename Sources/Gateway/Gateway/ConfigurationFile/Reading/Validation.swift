import Trust

/// What the checks of one configuration share: the surroundings, and the errors and warnings found
/// so far.
///
/// Used by one thread, for the length of one load.
final class Validation {
    /// Errors that are kept; a file with more is wrong from end to end.
    static let maximumErrors = 200
    /// Warnings that are kept.
    static let maximumWarnings = 200

    let environment: ConfigurationEnvironment
    /// The absolute folder that the file's relative paths are relative to.
    let folder: String
    /// Lists of logs that have been read, by their paths: several entries may name one.
    var logLists: [String: Result<TransparencyLogList, LogListProblem>] = [:]
    private(set) var errors: [ConfigurationError] = []
    private var warnings: [ConfigurationWarning] = []

    init(environment: ConfigurationEnvironment, folder: String) {
        self.environment = environment
        self.folder = folder
    }

    /// Records an error; the checks go on.
    func report(
        _ origin: ConfigurationError.Origin, _ key: String, _ problem: String, expected: String
    ) {
        guard errors.count < Self.maximumErrors else { return }
        errors.append(
            ConfigurationError(origin: origin, key: key, problem: problem, expected: expected))
    }

    /// Records a warning: something valid that probably does not do what its author meant.
    func warn(_ origin: ConfigurationError.Origin, _ key: String, _ text: String) {
        guard warnings.count < Self.maximumWarnings else { return }
        warnings.append(ConfigurationWarning(origin: origin, key: key, text: text))
    }

    /// The errors in the order of the file, those of options after them.
    var sortedErrors: [ConfigurationError] { Self.sorted(errors, by: \.origin) }

    /// The warnings in the order of the file, those about options after them.
    var sortedWarnings: [ConfigurationWarning] { Self.sorted(warnings, by: \.origin) }

    private static func sorted<Finding>(
        _ findings: [Finding], by origin: KeyPath<Finding, ConfigurationError.Origin>
    ) -> [Finding] {
        func line(_ finding: Finding) -> Int { finding[keyPath: origin].line ?? .max }
        return findings.enumerated()
            .sorted { (line($0.element), $0.offset) < (line($1.element), $1.offset) }
            .map(\.element)
    }

    /// The absolute form of a path: `~` is the home folder, a relative path of the file is taken
    /// from the file's folder and one of an option from the working folder.
    func path(_ text: String, writtenIn origin: ConfigurationError.Origin) -> String? {
        if text == "~" || text.hasPrefix("~/") {
            guard let home = environment.homeFolder else { return nil }
            return Files.absolute("." + text.dropFirst(), in: home)
        }
        switch origin {
        case .file: return Files.absolute(text, in: folder)
        case .option, .builtIn: return Files.absolute(text, in: environment.workingFolder)
        }
    }
}
