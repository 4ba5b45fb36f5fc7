/// What the checks of one configuration share: the surroundings and the errors found so far.
///
/// Used by one thread, for the length of one load.
final class Validation {
    /// Errors that are kept; a file with more is wrong from end to end.
    static let maximumErrors = 200

    let environment: ConfigurationEnvironment
    /// The absolute folder that the file's relative paths are relative to.
    let folder: String
    private(set) var errors: [ConfigurationError] = []

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

    /// The errors in the order of the file, those of options after them.
    var sortedErrors: [ConfigurationError] {
        func line(_ error: ConfigurationError) -> Int {
            if case .file(_, let line) = error.origin { line } else { .max }
        }
        return errors.enumerated()
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
