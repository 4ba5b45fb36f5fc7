import Foundation

/// A target as `Package.swift` declares it.
struct DeclaredTarget: Equatable {
    enum Kind: Substring {
        case library = "target"
        case system = "systemLibrary"
        case program = "executableTarget"
        case test = "testTarget"
    }
    var kind: Kind
    var name: String
    /// Other targets, and products of other packages.
    var dependencies: Set<String>

    /// All that a manifest's text declares, in its order.
    static func all(in manifest: String) -> [DeclaredTarget] {
        let beginning =
            /\.(target|systemLibrary|executableTarget|testTarget)\(\s*name: "(\w+)"/
        let matches = manifest.matches(of: beginning)
        return matches.enumerated().compactMap { index, match in
            guard let kind = Kind(rawValue: match.1) else { return nil }
            let end =
                index + 1 < matches.count
                ? matches[index + 1].range.lowerBound : manifest.endIndex
            return DeclaredTarget(
                kind: kind, name: String(match.2),
                dependencies: dependencies(manifest[match.range.upperBound..<end]))
        }
    }

    /// The names in the first list of dependencies; of a product its own, not its package's.
    private static func dependencies(_ declaration: Substring) -> Set<String> {
        guard let start = declaration.range(of: "dependencies: [") else { return [] }
        let list = declaration[start.upperBound...].prefix { $0 != "]" }
            .replacing(/package: "[^"]*"/, with: "")
        return Set(list.matches(of: /"(\w+)"/).map { String($0.1) })
    }
}

extension Package {
    static func declaredTargets() throws -> [DeclaredTarget] {
        let url = root.appendingPathComponent("Package.swift")
        return DeclaredTarget.all(in: try String(contentsOf: url, encoding: .utf8))
    }

    /// The rows of the page on the architecture: each target, and what it may import.
    static func documentedImports() throws -> [(target: String, imports: Set<String>)] {
        let page = root.appendingPathComponent("Sources/Gateway/Gateway.docc/Architecture.md")
        let lines = try String(contentsOf: page, encoding: .utf8).components(separatedBy: "\n")
        let rows = lines.drop { $0 != "| target | may import | holds |" }.prefix { $0 != "" }
        return rows.flatMap { row -> [(target: String, imports: Set<String>)] in
            let cells = row.components(separatedBy: "|")
            guard cells.count == 5 else { return [] }
            let imports = cells[2].components(separatedBy: ",").map {
                $0.trimmingCharacters(in: .whitespaces)
            }
            return cells[1].matches(of: /`(\w+)`/).map { match in
                (String(match.1), Set(imports.filter { $0 != "–" }.map { names[$0] ?? $0 }))
            }
        }
    }

    /// What the page calls the products of other packages.
    private static let names = [
        "HTTP types": "HTTPTypes", "swift-log": "Logging", "argument parser": "ArgumentParser",
        "structured field values": "RawStructuredFieldValues",
    ]
}
