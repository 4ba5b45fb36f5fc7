import Foundation

/// The checkout that the tests were built from.
package enum Checkout {
    package static let root: URL = {
        var folder = URL(filePath: #filePath).deletingLastPathComponent()
        while folder.path != "/", !isPackage(folder) { folder.deleteLastPathComponent() }
        return folder
    }()

    private static func isPackage(_ folder: URL) -> Bool {
        FileManager.default.fileExists(atPath: folder.appending(path: "Package.swift").path)
    }

    /// A file, by its path from the root.
    package static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appending(path: path), encoding: .utf8)
    }

    package static func bytes(_ path: String) throws -> [UInt8] {
        Array(try Data(contentsOf: root.appending(path: path)))
    }

    /// A page of the documentation, in whichever catalogue it is.
    package static func page(_ name: String) throws -> String {
        let sources = root.appending(path: "Sources")
        let found = FileManager.default.enumerator(atPath: sources.path)?.first {
            ($0 as? String)?.hasSuffix(".docc/\(name).md") == true
        }
        guard let path = found as? String else { throw CocoaError(.fileNoSuchFile) }
        return try text("Sources/" + path)
    }
}
