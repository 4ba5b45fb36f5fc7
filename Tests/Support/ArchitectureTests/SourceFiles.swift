import Foundation
import TestSupport

/// One Swift file of the package.
struct SourceFile: Sendable {
    /// Relative to the package's root: `Sources/Core/HTTPCore/Method.swift`.
    var path: String
    var lines: [String]

    /// The folder of a module, two levels below `Sources` or `Tests`.
    var module: String {
        let parts = path.split(separator: "/")
        return parts.count > 3 ? String(parts[2]) : ""
    }

    /// Whether it belongs to no target of this package.
    var isOutside: Bool { Package.outside.contains { path.hasPrefix($0 + "/") } }

    /// The entry of a table for the innermost folder that contains the file.
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

    /// The module that a line imports, whatever precedes and follows its name.
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

    /// What is built separately from this package.
    static let outside = ["Tests/Fuzz", "Tests/Integration"]

    /// What any file may import.
    static let alwaysAllowed: Set = ["Swift", "Synchronization"]

    /// The Swift files below a folder of the root, in the order of their paths. Those that the
    /// documentation shows are left out, as they are no part of a target; so is a file that exists
    /// only while the gateway is built, perhaps while the tests run.
    static func files(in folder: String) throws -> [SourceFile] {
        let base = root.appendingPathComponent(folder)
        guard let walk = FileManager.default.enumerator(atPath: base.path) else { return [] }
        let names = walk.compactMap { $0 as? String }.filter {
            $0.hasSuffix(".swift") && !$0.contains(".docc/") && !$0.hasSuffix("+Generated.swift")
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
