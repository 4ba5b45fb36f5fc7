import Foundation
import TestSupport

/// What one folder may import, according to `Package.swift`.
struct FolderImports: Equatable {
    /// Relative to `Sources` or `Tests`: `Layer/Module`, or a folder within it.
    var folder: String
    var imports: Set<String>

    var module: String { folder.split(separator: "/").prefix(2).last.map(String.init) ?? "" }

    /// The entries of one of a manifest's tables, in its order.
    static func table(_ name: String, in manifest: String) -> [FolderImports] {
        guard let start = manifest.range(of: "let \(name): KeyValuePairs") else { return [] }
        let table = manifest[start.upperBound...].prefix { $0 != "\u{7D}" }
        let end = table.range(of: "\n]\n")?.lowerBound ?? table.endIndex
        return table[..<end].matches(of: /"([\w\/]+)": \[([^\]]*)\]/).map { match in
            FolderImports(
                folder: String(match.1),
                imports: Set(match.2.matches(of: /"(\w+)"/).map { String($0.1) }))
        }
    }
}

extension Package {
    static func manifest() throws -> String { try Checkout.text("Package.swift") }

    /// The tables of the manifest: for each base folder, its folders in order.
    static func imports() throws -> [(base: String, entries: [FolderImports])] {
        let manifest = try manifest()
        return [
            ("Sources", FolderImports.table("imports", in: manifest)),
            ("Tests", FolderImports.table("testImports", in: manifest)),
        ]
    }

    /// The C modules that the manifest declares.
    static func librariesOfC() throws -> [String] {
        try manifest().matches(of: /(?:system\(|name: )"(C[A-Z]\w+)"/).map { String($0.1) }
    }

    /// The rows of the architecture page: each module, and what it may import.
    static func documentedImports() throws -> [(module: String, imports: Set<String>)] {
        let lines = try Checkout.page("Architecture").components(separatedBy: "\n")
        let rows = lines.drop { $0 != "| module | may import | holds |" }.prefix { $0 != "" }
        return rows.flatMap { row -> [(module: String, imports: Set<String>)] in
            let cells = row.components(separatedBy: "|")
            guard cells.count == 5 else { return [] }
            let imports = cells[2].components(separatedBy: ",").map {
                $0.trimmingCharacters(in: .whitespaces)
            }
            return cells[1].matches(of: /`(\w+)`/).map { match in
                (String(match.1), Set(imports.filter { $0 != "–" }))
            }
        }
    }
}
