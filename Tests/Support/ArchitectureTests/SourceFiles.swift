import Foundation
import TestSupport

/// One Swift file of the package.
struct SourceFile: Sendable {
    /// Below the package's root: `Sources/Core/HTTPCore/Method.swift`.
    var path: String
    var lines: [String]

    /// The folder of a module, two below `Sources` or `Tests`.
    var module: String {
        let parts = path.split(separator: "/")
        return parts.count > 3 ? String(parts[2]) : ""
    }

    /// In no target of this package.
    var isOutside: Bool { Package.outside.contains { path.hasPrefix($0 + "/") } }

    /// Of a table's entries, that of the innermost folder that the file is in.
    func entry(of table: [FolderImports]) -> FolderImports? {
        let inner = path.split(separator: "/").dropFirst().joined(separator: "/")
        return table.filter { inner.hasPrefix($0.folder + "/") }.max {
            $0.folder.count < $1.folder.count
        }
    }

    /// The modules that the file imports, with the line of each, counted from 1.
    var imports: [(module: String, line: Int)] {
        lines.enumerated().compactMap { index, line in
            SourceFile.importedModule(line).map { ($0, index + 1) }
        }
    }

    /// The module that a line imports, whatever stands before and after its name.
    static func importedModule(_ line: String) -> String? {
        var words = line.prefix(upTo: line.range(of: "//")?.lowerBound ?? line.endIndex)
            .split(whereSeparator: \.isWhitespace)[...]
        let modifiers: Set<Substring> = [
            "public", "package", "internal", "fileprivate", "private",
        ]
        while let word = words.first, word.hasPrefix("@") || modifiers.contains(word) {
            words.removeFirst()
        }
        guard words.popFirst() == "import" else { return nil }
        let kinds: Set<Substring> = [
            "struct", "class", "enum", "protocol", "typealias", "func", "var", "let",
        ]
        if let word = words.first, kinds.contains(word) { words.removeFirst() }
        return words.first.map { String($0.prefix { $0 != "." && $0 != ";" }) }
    }
}

/// The package that this file belongs to.
enum Package {
    static let root = Checkout.root

    /// What is built apart from this package.
    static let outside = ["Tests/Fuzz", "Tests/Integration"]

    /// What any file may import.
    static let alwaysAllowed: Set = ["Swift", "Synchronization"]

    /// The Swift files below a folder of the root, in the order of their paths; without those that
    /// the documentation shows, which are no part of a target.
    static func files(in folder: String) throws -> [SourceFile] {
        let base = root.appendingPathComponent(folder)
        guard let walk = FileManager.default.enumerator(atPath: base.path) else { return [] }
        let names = walk.compactMap { $0 as? String }.filter {
            $0.hasSuffix(".swift") && !$0.contains(".docc/")
        }
        return try names.sorted().map { name in
            let text = try String(contentsOf: base.appendingPathComponent(name), encoding: .utf8)
            return SourceFile(
                path: folder + "/" + name, lines: text.components(separatedBy: "\n"))
        }
    }

    /// The folders directly below a folder of the root.
    static func folders(in folder: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(
            at: root.appendingPathComponent(folder), includingPropertiesForKeys: [.isDirectoryKey]
        ).filter { try $0.resourceValues(forKeys: [.isDirectoryKey]).isDirectory == true }
            .map(\.lastPathComponent).sorted()
    }
}
