/// One thing that is wrong with a configuration.
package struct ConfigurationError: Error, Sendable, Equatable, CustomStringConvertible {
    /// Where the offending value was written.
    package enum Origin: Sendable, Equatable {
        /// A line of the configuration file, counted from 1; 0 is the file as a whole.
        case file(name: String, line: Int)
        /// A command-line option, with its dashes.
        case option(String)
        /// A built-in default, which is at fault only together with something else.
        case builtIn
    }

    /// Where the offending value was written.
    package var origin: Origin
    /// The key's path, `listeners[0].address`; empty for the file as a whole.
    package var key: String
    /// What is wrong.
    package var problem: String
    /// What would be right; empty when the problem says it.
    package var expected: String

    /// `file:line: key: what is wrong; expected …`, in one line.
    package var description: String {
        let place: String
        switch origin {
        case .file(let name, line: 0): place = name
        case .file(let name, let line): place = "\(name):\(line)"
        case .option(let option): place = option
        case .builtIn: place = "built-in defaults"
        }
        let named = key.isEmpty ? place : "\(place): \(key)"
        return expected.isEmpty
            ? "\(named): \(problem)" : "\(named): \(problem); expected \(expected)"
    }
}

/// Everything that is wrong with a configuration, in the order of the file; never empty.
package struct ConfigurationErrors: Error, Sendable, Equatable, CustomStringConvertible {
    /// The errors.
    package var errors: [ConfigurationError]

    /// One line per error.
    package var description: String {
        errors.map(\.description).joined(separator: "\n")
    }
}
