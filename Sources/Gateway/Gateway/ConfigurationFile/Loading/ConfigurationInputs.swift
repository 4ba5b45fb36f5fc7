import Files

/// Everything that a configuration was read from, in the state in which it was read.
package struct ConfigurationInputs: Sendable, Equatable {
    /// The configuration file and those that it includes, in the order in which they were read, as
    /// in errors.
    package var files: [String] = []
    /// All files that were read, or would have been, by their absolute paths.
    var states: [String: FileState] = [:]
    /// What the patterns of `include` matched.
    var matches: [PathPattern: [String]] = [:]

    /// Records a file's state, before it is read.
    mutating func note(_ path: String) {
        if states[path] == nil { states[path] = FileState(of: path) }
    }

    /// The same inputs without some files.
    func without(_ paths: Set<String>) -> ConfigurationInputs {
        var rest = self
        rest.states = states.filter { !paths.contains($0.key) }
        return rest
    }
}
