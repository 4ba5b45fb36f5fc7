import Foundation

/// A folder for a single test, removed after it with everything in it.
package final class TemporaryFolder: Sendable {
    /// Its absolute path.
    package let path: String

    /// Creates the folder; a machine on which that fails cannot run tests.
    package init() {
        let base = FileManager.default.temporaryDirectory.path
        var template = Array((base + "/pinfold-tests-XXXXXX").utf8CString)
        precondition(mkdtemp(&template) != nil, "no temporary folder can be made")
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// The path of a file in it.
    package func file(_ name: String) -> String { path + "/" + name }

    /// Its contents, sorted.
    package var names: [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted()
    }

    /// Writes or replaces a file in the folder.
    package func write(_ text: String, to name: String) throws {
        try text.write(toFile: file(name), atomically: false, encoding: .utf8)
    }
}
