/// Reads files named on the command line, with the same rules as for files that a configuration
/// names.
package enum CommandFiles {
    /// Why a file could not be read, with its name, as a message for the user.
    package struct ReadError: Error, CustomStringConvertible {
        package let description: String
    }

    /// Reads a regular file of at most 16 MiB.
    ///
    /// - Parameter path: Absolute, or relative to the working folder.
    package static func read(_ path: String) throws(ReadError) -> [UInt8] {
        do {
            return try ConfigurationFiles.read(path)
        } catch {
            throw ReadError(description: "\(quoted(path: path)) \(error.text)")
        }
    }
}
