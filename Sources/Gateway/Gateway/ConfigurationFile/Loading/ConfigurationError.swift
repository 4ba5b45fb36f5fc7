/// An error in a configuration.
package struct ConfigurationError: Error, Sendable, Equatable, CustomStringConvertible {
    /// Where the offending value was written.
    package enum Origin: Sendable, Equatable {
        /// A line of the configuration file, counted from 1, or 0 for the file as a whole.
        case file(name: String, line: Int)
        /// A command-line option, with its dashes.
        case option(String)
        /// A built-in default, which is wrong only in combination with something else.
        case builtIn

        /// The line of the file, or `nil` if the value was not written in the file.
        package var line: Int? {
            if case .file(_, let line) = self { line } else { nil }
        }

        /// The file's name, or `nil` if the value was not written in a file.
        package var file: String? {
            if case .file(let name, _) = self { name } else { nil }
        }

        /// `file:line: key`, without the key if it is empty; or `--option`, whose key the user did
        /// not write.
        func place(key: String) -> String {
            let place: String
            switch self {
            case .file(let name, line: 0): place = name
            case .file(let name, let line): place = "\(name):\(line)"
            case .option(let option): return option
            case .builtIn: place = "built-in defaults"
            }
            return key.isEmpty ? place : "\(place): \(key)"
        }
    }

    /// Where the offending value was written.
    package var origin: Origin
    /// The key's path, `listeners[0].address`; empty for the file as a whole.
    package var key: String
    /// What is wrong.
    package var problem: String
    /// What would be valid; empty if that is clear from the problem.
    package var expected: String

    /// `file:line: key: what is wrong; expected …` or `--option: what is wrong; expected …`, on
    /// one line.
    package var description: String {
        let named = origin.place(key: key)
        return expected.isEmpty
            ? "\(named): \(problem)" : "\(named): \(problem); expected \(expected)"
    }
}

/// All errors in a configuration, in the order of the files; never empty.
package struct ConfigurationErrors: Error, Sendable, Equatable, CustomStringConvertible {
    /// The errors.
    package var errors: [ConfigurationError]
    /// What was read until then.
    package var inputs: ConfigurationInputs

    package init(
        errors: [ConfigurationError], inputs: ConfigurationInputs = ConfigurationInputs()
    ) {
        (self.errors, self.inputs) = (errors, inputs)
    }

    /// Whether the errors are the same.
    package static func == (left: ConfigurationErrors, right: ConfigurationErrors) -> Bool {
        left.errors == right.errors
    }

    /// One line per error.
    package var description: String {
        errors.map(\.description).joined(separator: "\n")
    }
}
