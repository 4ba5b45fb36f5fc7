/// Files that a command is given, read as those that a configuration names.
package enum CommandFiles {
    /// Why a file could not be read: its name and the reason, for people.
    package struct Problem: Error, CustomStringConvertible {
        package let description: String
    }

    /// The whole content of a regular file of at most 16 MiB.
    ///
    /// - Parameter path: absolute, or relative to the working folder.
    package static func read(_ path: String) throws(Problem) -> [UInt8] {
        do {
            return try Files.read(path)
        } catch {
            throw Problem(description: "\(quoted(path)) \(error.text)")
        }
    }
}
