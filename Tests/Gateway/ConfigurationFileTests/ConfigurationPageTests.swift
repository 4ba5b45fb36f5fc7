import Foundation
import PinfoldConfiguration
import TestSupport
import Testing

@testable import Gateway

/// Compares `config/pinfold.yaml` and the Configuration page with the tables for reading the file.
@Suite("The documentation of the keys")
struct ConfigurationPageTests {
    @Test func `the page has every key of every section with its default and no other`() throws {
        let page = try Self.rows(ofPage: Checkout.page("Configuration"))
        for section in SectionName.allCases {
            guard let keys = section.described else { continue }
            let known = keys.compactMap { key -> String? in
                switch key.byDefault {
                case .yaml(let text), .words(let text): "\(key.name): \(Self.plain(text))"
                case .notYetSupported: nil
                }
            }
            #expect(page[section.rawValue, default: []].sorted() == known.sorted(), "\(section)")
        }
        #expect(Set(page.keys) == Set(SectionName.allCases.map(\.rawValue)))
    }

    @Test func `the sample file has every key with its default and no other`() throws {
        let file = try Self.leaves(ofSample: Checkout.text("config/pinfold.yaml"))
        for section in SectionName.allCases {
            guard let keys = section.described else { continue }
            let written = file[section.rawValue, default: [:]]
            for key in keys {
                let values = written.filter { $0.key == key.name }.flatMap(\.value)
                let place = "\(section).\(key.name)"
                switch key.byDefault {
                // The pins are examples; there are none by default.
                case .yaml where place == "pinsets.pins": #expect(!values.isEmpty)
                case .yaml(let text): #expect(values.contains(Self.plain(text)), "\(place)")
                case .words: #expect(!values.isEmpty, "\(place)")
                case .notYetSupported:
                    #expect(written.keys.contains { $0.isWithin(key.name) }, "\(place)")
                }
            }
            for name in written.keys {
                #expect(keys.contains { name.isWithin($0.name) }, "\(section).\(name)")
            }
        }
        let sections = Set(file.keys)
        #expect(sections == Set(SectionName.allCases.map(\.rawValue) + SectionName.later))
    }

    // MARK: The page

    /// The keys of each section's table, as `name: default`.
    private static func rows(ofPage page: String) throws -> [String: [String]] {
        var rows: [String: [String]] = [:]
        var section = ""
        var column: Int?
        for line in page.split(separator: "\n") {
            if line.hasPrefix("## ") {
                section = line.split(separator: "`").dropFirst().first.map(String.init) ?? ""
                column = nil
            }
            let cells = line.components(separatedBy: "|").dropFirst()
                .map { $0.trimmingCharacters(in: .whitespaces) }
            if cells.first == "key" { column = cells.firstIndex(of: "default") }
            guard let column, let names = cells.first, names.hasPrefix("`") else { continue }
            for name in plain(names).components(separatedBy: ", ") {
                rows[section, default: []].append("\(name): \(plain(cells[column]))")
            }
        }
        return rows
    }

    // MARK: The file

    /// The values of each section's keys, including those that are commented out.
    private static func leaves(ofSample text: String) throws -> [String: [String: [String]]] {
        let lines = uncommented(text.components(separatedBy: "\n"))
        let root = try YAMLDocument.parse(Array(lines.joined(separator: "\n").utf8), name: "sample")
        guard case .mapping(let sections) = root.content else { return [:] }
        var result: [String: [String: [String]]] = [:]
        for section in sections {
            var leaves: [String: [String]] = [:]
            switch section.value.content {
            case .sequence(let elements):
                for element in elements { collect(element, "", into: &leaves) }
            // Its keys are names.
            case .mapping(let named) where ["pinsets", "parents"].contains(section.key):
                for one in named { collect(one.value, "", into: &leaves) }
            default: collect(section.value, "", into: &leaves)
            }
            result[section.key, default: [:]].merge(leaves) { $0 + $1 }
        }
        return result
    }

    /// The lines, where keys in a comment, or in a comment within a comment, lose the comment sign.
    private static func uncommented(_ lines: [String]) -> [String] {
        lines.map { line in
            let key = /( *)# ( *)(# )?((- )?[a-z][A-Za-z0-9]*:( .*)?)/
            guard let match = line.wholeMatch(of: key) else { return line }
            return "\(match.1)\(match.2)\(match.4)"
        }
    }

    private static func collect(
        _ node: ConfigNode, _ path: String, into leaves: inout [String: [String]]
    ) {
        switch node.content {
        case .mapping(let entries) where !entries.isEmpty:
            for entry in entries {
                collect(
                    entry.value, path.isEmpty ? entry.key : "\(path).\(entry.key)", into: &leaves)
            }
        case .mapping: leaves[path, default: []].append("{}")
        case .sequence(let elements) where elements.contains(where: \.isMapping):
            for element in elements { collect(element, path, into: &leaves) }
        case .sequence(let elements):
            let texts = elements.map { element in
                if case .scalar(let text, _) = element.content { text } else { "…" }
            }
            leaves[path, default: []].append("[\(texts.joined(separator: ", "))]")
        case .scalar(let text, _): leaves[path, default: []].append(plain(text))
        case .null: break
        }
        if path.isEmpty { leaves[""] = nil }
    }

    /// A text without YAML and Markdown quotes, and with durations in their largest unit.
    private static func plain(_ text: String) -> String {
        let text = text.filter { $0 != "\"" && $0 != "`" }
        return Quantity.milliseconds(text).map(Quantity.text(milliseconds:)) ?? text
    }
}

extension ConfigNode {
    fileprivate var isMapping: Bool { if case .mapping = content { true } else { false } }
}

extension String {
    /// `a.b` is within `a.b` and within `a`.
    fileprivate func isWithin(_ key: String) -> Bool { self == key || hasPrefix(key + ".") }
}
