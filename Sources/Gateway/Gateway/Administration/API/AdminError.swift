import Documents
import HTTPCore

/// An error as the API reports it (RFC 9457).
package struct AdminError: Error {
    /// The status code.
    package var status: UInt16
    /// What kind of error it is, in lower case with hyphens: the end of `type`.
    package var kind: String
    /// The kind in words.
    package var title: String
    /// What is wrong with this request, and what would be right.
    package var detail: String
    /// The errors of a configuration that was refused.
    package var errors: [ConfigurationFinding] = []
    /// Response fields.
    package var fields: [AdminResponse.Field] = []

    /// Creates a problem from its parts.
    package init(
        _ status: UInt16, _ kind: String, _ title: String, _ detail: String,
        errors: [ConfigurationFinding] = [], fields: [AdminResponse.Field] = []
    ) {
        (self.status, self.kind, self.title) = (status, kind, title)
        (self.detail, self.errors, self.fields) = (detail, errors, fields)
    }

    /// Its shape.
    package static let shape = ObjectShape<AdminError>(
        "An error (RFC 9457).",
        [
            .text("type", "urn:pinfold:problem: and the kind of error.") {
                "urn:pinfold:problem:\($0.kind)"
            },
            .text("title", "The kind of error in words.") { $0.title },
            .number("status", "The status code.") { Int($0.status) },
            .text("detail", "What is wrong with this request, and what would be right.") {
                $0.detail
            },
            .optionalList(
                "errors", ConfigurationFinding.shape,
                "The errors of the configuration, if it was refused."
            ) { $0.errors },
        ])

    /// The response.
    package var response: AdminResponse {
        AdminResponse(
            status: status, contentType: "application/problem+json",
            fields: fields + [AdminSite.noStore], body: Self.shape.json(self).jsonLine)
    }
}

extension DocumentValue {
    /// The value as a line of JSON.
    var jsonLine: [UInt8] { Array((description + "\n").utf8) }
}

/// An error of a configuration, or a warning about it, as the API shows it.
package struct ConfigurationFinding: Sendable, Equatable {
    /// The file in which the value is written; `nil` if it is not from a file.
    package var file: String?
    /// The line, counted from 1; `nil` for the file as a whole.
    package var line: Int?
    /// The column, counted from 1; `nil` if it has not been looked for.
    package var column: Int?
    /// The command-line option that gave the value; `nil` if none did.
    package var option: String?
    /// The key's path; empty for the file as a whole.
    package var key: String
    /// What is wrong.
    package var problem: String
    /// What would be valid; `nil` if the problem says that.
    package var expected: String?
    /// Place, key, problem and what was expected, as the operational log has it.
    package var text: String

    /// Its shape.
    package static let shape = ObjectShape<ConfigurationFinding>(
        "An error of a configuration, or a warning about it.",
        [
            .optionalText("file", "The file in which the value is written.") { $0.file },
            .optionalNumber("line", "The line, counted from 1.") { $0.line },
            .optionalNumber("column", "The column, counted from 1, if it is known.") { $0.column },
            .optionalText("option", "The command-line option that gave the value.") { $0.option },
            .text("key", "The key's path; empty for the file as a whole.") { $0.key },
            .text("problem", "What is wrong.") { $0.problem },
            .optionalText("expected", "What would be valid.") { $0.expected },
            .text("text", "All of this on one line, as the operational log has it.") { $0.text },
        ])
}

extension ConfigurationFinding {
    /// An error of a configuration.
    package init(_ error: ConfigurationError) {
        self.init(
            error.origin, key: error.key, problem: error.problem,
            expected: error.expected.isEmpty ? nil : error.expected, text: error.description)
    }

    /// A warning about a configuration.
    package init(_ warning: ConfigurationWarning) {
        self.init(
            warning.origin, key: warning.key, problem: warning.text, expected: nil,
            text: warning.description)
    }

    /// An error that has no place in a configuration: an address is in use, for example.
    package init(_ text: String) {
        self.init(.builtIn, key: "", problem: text, expected: nil, text: text)
    }

    private init(
        _ origin: ConfigurationError.Origin, key: String, problem: String, expected: String?,
        text: String
    ) {
        (self.key, self.problem, self.expected, self.text) = (key, problem, expected, text)
        switch origin {
        case .file(let name, let line): (file, self.line) = (name, line > 0 ? line : nil)
        case .option(let option): self.option = option
        case .builtIn: break
        }
    }

    /// The errors for which a configuration was refused.
    package static func all(of error: any Error) -> [ConfigurationFinding] {
        guard let errors = error as? ConfigurationErrors else { return [Self("\(error)")] }
        return all(of: errors)
    }

    /// The same, with the columns as the files are now.
    package static func all(of errors: ConfigurationErrors) -> [ConfigurationFinding] {
        var columns = KeyColumns(folder: ConfigurationEnvironment.ofProcess().workingFolder)
        return errors.errors.map { error in
            var finding = Self(error)
            if let file = finding.file, let line = finding.line {
                finding.column = columns.column(
                    file: file, line: line, key: finding.key, problem: finding.problem)
            }
            return finding
        }
    }
}
