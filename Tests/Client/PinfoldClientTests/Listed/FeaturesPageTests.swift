import Foundation
import TestSupport
import Testing

/// The tables of a page that name the tests of what they list.
struct TestTables {
    /// A row of a table.
    struct Row {
        var feature: String
        /// Suites or files, each with a sentence or the name of a function.
        var tests: [(place: String, test: String)]
        /// Why there is no test, if the row says so.
        var refusal: String?
    }

    let rows: [Row]
    private let sources: [(path: String, text: String)]

    init(of page: String) throws {
        rows = try Checkout.page(page).split(separator: "\n").compactMap { line in
            let cells = line.split(separator: "|").map {
                $0.trimmingCharacters(in: .whitespaces)
            }
            guard line.hasPrefix("| "), cells.count == 2, cells[1] != "tests" else { return nil }
            guard cells[1] != "no", !cells[1].hasPrefix("no: ") else {
                return Row(feature: cells[0], tests: [], refusal: cells[1])
            }
            return Row(feature: cells[0], tests: Self.tests(in: cells[1]))
        }
        let tests = Checkout.root.appending(path: "Tests")
        let names = try FileManager.default.subpathsOfDirectory(atPath: tests.path)
        sources = try names.filter {
            $0.hasSuffix("Tests.swift")
                || $0.hasPrefix("Integration/test_") && $0.hasSuffix(".py")
        }.map { ($0, try String(contentsOf: tests.appending(path: $0), encoding: .utf8)) }
    }

    private static func tests(in cell: String) -> [(place: String, test: String)] {
        var tests: [(place: String, test: String)] = []
        for entry in cell.components(separatedBy: "; ") {
            if let found = entry.firstMatch(of: /^`(\w+Tests|\w+\.py)`: (.+)$/) {
                tests.append((String(found.1), String(found.2)))
            } else if let place = tests.last?.place {
                tests.append((place, entry))
            }
        }
        return tests
    }

    /// Whether there is a test.
    func has(_ test: String, in place: String) -> Bool {
        sources.contains { path, text in
            place.hasSuffix(".py")
                ? path == "Integration/\(place)" && text.contains("def \(test)(")
                : text.contains("struct \(place) {") && text.contains("func `\(test)`")
        }
    }
}

@Suite("The page on other libraries' features")
struct FeaturesPageTests {
    @Test func `names a test for each of them or says no, and only existing tests`() throws {
        let tables = try TestTables(of: "Features")
        #expect(tables.rows.count > 90)
        for row in tables.rows {
            #expect(!row.tests.isEmpty || row.refusal != nil, "\(row.feature)")
            for (place, test) in row.tests {
                #expect(tables.has(test, in: place), "\(place): \(test)")
            }
        }
    }
}
