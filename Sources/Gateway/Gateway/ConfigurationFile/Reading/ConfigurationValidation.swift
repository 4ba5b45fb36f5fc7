import Files
import PinfoldConfiguration
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
    /// The absolute path of the folder of the file that was named.
    let folder: String
    /// The names of the files, in the order in which they count.
    var files: [String] = []
    /// What was read, or would have been.
    var inputs = ConfigurationInputs()
    /// The variables that the configuration uses.
    var variables = UsedVariables()
    /// The absolute paths of files, with variables, by the paths of their keys; recorded only where
    /// there are variables.
    private(set) var filePaths: [String: String] = [:]
    /// What of the document is a policy's; `nil` if nothing is.
    var policy: PolicyReading?
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
        report(ConfigurationError(origin: origin, key: key, problem: problem, expected: expected))
    }

    /// Records an error; the checks continue.
    func report(_ error: ConfigurationError) {
        guard errors.count < Self.maximumErrors else { return }
        var error = error
        error.problem = variables.concealed(in: error.problem)
        error.expected = variables.concealed(in: error.expected)
        errors.append(error)
    }

    /// What was probably meant by an unknown name, to be added to the error about it; empty if
    /// nothing was, or if the error will not be kept.
    func hint(for name: String, among known: [String]) -> String {
        guard errors.count < Self.maximumErrors else { return "" }
        return NearestKey.nearest(to: name, among: known)
            .map { " (did you mean \(quoted($0))?)" } ?? ""
    }

    /// Records a warning: a valid setting that probably does not have the intended effect.
    func warn(_ origin: ConfigurationError.Origin, _ key: String, _ text: String) {
        guard warnings.count < Self.maximumWarnings else { return }
        warnings.append(
            ConfigurationWarning(origin: origin, key: key, text: variables.concealed(in: text)))
    }

    /// The errors in the order of the files, followed by those about options.
    var sortedErrors: [ConfigurationError] { sorted(errors, by: \.origin) }

    /// The warnings in the order of the files, followed by those about options.
    var sortedWarnings: [ConfigurationWarning] { sorted(warnings, by: \.origin) }

    private func sorted<Finding>(
        _ findings: [Finding], by origin: KeyPath<Finding, ConfigurationError.Origin>
    ) -> [Finding] {
        func place(_ finding: Finding) -> (Int, Int) {
            guard case .file(let name, let line) = finding[keyPath: origin] else {
                return (.max, .max)
            }
            return (files.firstIndex(of: name) ?? 0, line)
        }
        return findings.enumerated().map { (place: place($0.element), index: $0.offset) }
            .sorted { ($0.place.0, $0.place.1, $0.index) < ($1.place.0, $1.place.1, $1.index) }
            .map { findings[$0.index] }
    }

    /// Records that a file is about to be read.
    func note(_ path: String) { inputs.note(path) }

    /// Makes a path absolute. `~` is the home folder. A relative path is relative to the folder of
    /// the file in which it was written, and to the working folder if it is from an option.
    func path(_ text: String, writtenIn origin: ConfigurationError.Origin) -> String? {
        if text == "~" || text.hasPrefix("~/") {
            guard let home = environment.homeFolder else { return nil }
            return ConfigurationFiles.absolute("." + text.dropFirst(), in: home)
        }
        return ConfigurationFiles.absolute(text, in: folder(of: origin))
    }

    /// The folder that paths are relative to where they are written.
    func folder(of origin: ConfigurationError.Origin) -> String {
        switch origin {
        case .file(let name, _) where files.isEmpty || name == files[0]: folder
        case .file(let name, _):
            Folder.of(ConfigurationFiles.absolute(name, in: environment.workingFolder))
        case .option, .builtIn: environment.workingFolder
        }
    }

    /// Records how a file's path is printed that has been made absolute.
    func note(_ path: String, of field: Field) {
        guard !variables.isEmpty else { return }
        guard let written = field.node.written, case .scalar(let text, _) = field.node.content
        else {
            filePaths[field.path] = VariableSyntax.escaped(path)
            return
        }
        filePaths[field.path] =
            text.hasPrefix("/") || text.hasPrefix("~")
            ? written.text
            : VariableSyntax.escaped(folder(of: field.node.origin)) + "/" + written.text
    }
}
