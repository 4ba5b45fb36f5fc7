import Foundation
import TestSupport
import Testing

@Suite("The page on AFNetworking's behaviours")
struct AFNetworkingPageTests {
    /// A row of the page's tables.
    private struct Row {
        var behaviour: String
        /// Suites or files, each with a sentence or the name of a function.
        var tests: [(place: String, test: String)]
    }

    private static func rows() throws -> [Row] {
        let page = try Checkout.page("AFNetworking")
        return page.split(separator: "\n").compactMap { line in
            let cells = line.split(separator: "|").map {
                $0.trimmingCharacters(in: .whitespaces)
            }
            guard line.hasPrefix("| "), cells.count == 2, cells[1] != "tests" else { return nil }
            var tests: [(place: String, test: String)] = []
            for entry in cells[1].components(separatedBy: "; ") {
                if let found = entry.firstMatch(of: /^`(\w+Tests|\w+\.py)`: (.+)$/) {
                    tests.append((String(found.1), String(found.2)))
                } else if let place = tests.last?.place {
                    tests.append((place, entry))
                }
            }
            return Row(behaviour: cells[0], tests: tests)
        }
    }

    /// The sources of all tests, by path.
    private static func sources() throws -> [(path: String, text: String)] {
        let tests = Checkout.root.appending(path: "Tests")
        let names = try FileManager.default.subpathsOfDirectory(atPath: tests.path)
        return try names.filter { $0.hasSuffix("Tests.swift") || $0.hasPrefix("Integration/test_") }
            .filter { !$0.hasSuffix(".pyc") }
            .map { ($0, try String(contentsOf: tests.appending(path: $0), encoding: .utf8)) }
    }

    @Test func `names a test for each of them, and only existing tests`() throws {
        let rows = try Self.rows()
        #expect(rows.count > 55)
        let sources = try Self.sources()
        for row in rows {
            #expect(!row.tests.isEmpty, "\(row.behaviour)")
            for (place, test) in row.tests {
                let isThere = sources.contains { path, text in
                    place.hasSuffix(".py")
                        ? path == "Integration/\(place)" && text.contains("def \(test)(")
                        : text.contains("struct \(place) {") && text.contains("func `\(test)`")
                }
                #expect(isThere, "\(place): \(test)")
            }
        }
    }
}
