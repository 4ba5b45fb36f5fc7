import Files

// What has become of the inputs since they were read.
extension ConfigurationInputs {
    /// The same inputs in their present state.
    func current() -> ConfigurationInputs {
        var now = self
        for path in states.keys { now.states[path] = FileState(of: path) }
        for pattern in matches.keys { now.matches[pattern] = Self.matches(of: pattern) }
        return now
    }

    /// What cannot be read has no matches here.
    static func matches(of pattern: PathPattern) -> [String] {
        (try? pattern.matches(most: SourceFiles.maximumFiles)) ?? []
    }
}
