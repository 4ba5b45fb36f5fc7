import Documents
import Foundation
import JSONSchema
import Testing
import Transformation

/// The tests of json-schema.org (Debian's json-schema-test-suite, which `deploy/test` installs).
@Suite("JSON Schema, by its official tests")
struct OfficialSuiteTests {
    private static let folder = "/usr/share/json-schema-test-suite/tests/"

    /// Schemas that refer to something outside themselves: they are refused.
    private static let remote: Set<String> = [
        "valid definition", "invalid definition", "remote ref, containing refs itself",
        "remote ref", "fragment within remote ref", "ref within remote ref", "base URI change",
        "base URI change - change folder", "base URI change - change folder in subschema",
        "root ref in remote ref", "remote ref with ref to definitions",
        "validation of binary-encoded media type documents",
    ]

    /// Optional tests of features that are implemented.
    private static let optional = [
        "bignum", "zeroTerminatedFloats", "format/date", "format/time", "format/date-time",
        "format/ipv4", "format/ipv6",
    ]

    private static func files(_ draft: Int) throws -> [String] {
        let base = folder + "draft\(draft)/"
        let names = try FileManager.default.contentsOfDirectory(atPath: base)
            .filter { $0.hasSuffix(".json") }.sorted()
        let further = optional.map { "optional/\($0).json" }
            .filter { FileManager.default.fileExists(atPath: base + $0) }
        return (names + further).map { base + $0 }
    }

    @Test(arguments: [(4, 230), (6, 300), (7, 350)])
    func `values are valid where they are to be, in every group of tests`(
        draft: Int, least: Int
    ) throws {
        var count = 0
        var refused = 0
        for file in try Self.files(draft) {
            let groups = try JSONDocument.value(of: Array(Data(contentsOf: URL(filePath: file))))
            guard case .array(let groups) = groups else { throw CocoaError(.fileReadCorruptFile) }
            for group in groups {
                guard let schema = try schema(group, draft: draft, file) else {
                    refused += 1
                    continue
                }
                count += try check(schema, group, file)
            }
        }
        #expect(count >= least)
        #expect(refused <= 12)
    }

    /// `nil` if it refers to something outside the schema.
    private func schema(
        _ group: DocumentValue, draft: Int, _ file: String
    ) throws -> JSONSchema? {
        guard let schema = group["schema"], case .string(let title)? = group["description"] else {
            throw CocoaError(.fileReadCorruptFile)
        }
        var text = schema
        if case .dictionary(var members) = schema, members["$schema"] == nil {
            members["$schema"] = .string("http://json-schema.org/draft-0\(draft)/schema#")
            text = .dictionary(members)
        }
        do throws(JSONSchemaError) {
            return try JSONSchema(bytes(text))
        } catch {
            #expect(Self.remote.contains(title), "\(file): \(title): \(error)")
            #expect(error.reason.hasSuffix("which is not in this file; nothing is fetched"))
            return nil
        }
    }

    private func bytes(_ value: DocumentValue) -> [UInt8] {
        var writer = JSONWriter()
        do throws(DocumentError) {
            try value.replay(into: &writer)
            return try writer.finish()
        } catch {
            Issue.record("\(error)")
            return []
        }
    }

    /// How many values were checked.
    private func check(
        _ schema: JSONSchema, _ group: DocumentValue, _ file: String
    ) throws -> Int {
        guard case .array(let tests)? = group["tests"] else {
            throw CocoaError(.fileReadCorruptFile)
        }
        for test in tests {
            let text = bytes(try #require(test["data"]))
            var isValid = true
            do throws(TransformationError) {
                try text.withContent { content throws(TransformationError) in
                    try schema.check(content)
                }
            } catch {
                #expect(error.reason == .responseSchemaViolated)
                isValid = false
            }
            #expect(
                .boolean(isValid) == test["valid"],
                "\(file): \(group["description"] as Any): \(test["description"] as Any)")
        }
        return tests.count
    }
}

extension [UInt8] {
    /// Calls `body` with the bytes.
    func withContent(
        _ body: (UnsafeRawBufferPointer) throws(TransformationError) -> Void
    ) throws(TransformationError) {
        try withUnsafeBytes { bytes in
            Swift.Result { () throws(TransformationError) in try body(bytes) }
        }.get()
    }
}
