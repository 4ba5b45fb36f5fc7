import PinfoldConfiguration

/// A valid setting that probably does not have the intended effect.
package struct ConfigurationWarning: Sendable, Equatable, CustomStringConvertible {
    /// Where the value in question was written.
    package var origin: ConfigurationError.Origin
    /// The key's path, `hosts[1].match[0]`; empty for the file as a whole.
    package var key: String
    /// What is suspicious, and what to write instead.
    package var text: String

    /// `file:line: key: text` or `--option: text`, on one line.
    package var description: String {
        let place = origin.place(key: key)
        return "\(place): \(text)"
    }
}

/// A valid configuration and the warnings about it.
package struct LoadedConfiguration: Sendable, Equatable {
    /// The configuration, with all defaults filled in.
    package var snapshot: ConfigurationSnapshot
    /// The warnings, in the order of the files.
    package var warnings: [ConfigurationWarning]
    /// What it was read from.
    package var inputs: ConfigurationInputs
    /// Whether there may be included files.
    package var hasIncludes = false
    /// What it is without its policy; `nil` if it was not read from a document.
    package var local: LocalConfiguration?
    /// The policy that is in it; `nil` if none is.
    package var document: PolicyDocument?

    /// A configuration with its warnings.
    package init(
        snapshot: ConfigurationSnapshot, warnings: [ConfigurationWarning] = [],
        inputs: ConfigurationInputs = ConfigurationInputs()
    ) {
        self.snapshot = snapshot
        self.warnings = warnings
        self.inputs = inputs
    }

    /// Whether both say the same: what they were made of may differ.
    package static func == (one: Self, other: Self) -> Bool {
        one.snapshot == other.snapshot && one.warnings == other.warnings
            && one.inputs == other.inputs && one.hasIncludes == other.hasIncludes
    }
}
