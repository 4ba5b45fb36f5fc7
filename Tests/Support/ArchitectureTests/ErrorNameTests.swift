import Testing

/// Error types with other names, and why.
private let exceptions = [
    "Errno": "it is named after errno(3)",
    "ConfigurationErrors": "it is several errors, thrown together",
]

@Suite("The names of error types")
struct ErrorNameTests {
    @Test(arguments: ["Sources", "Tests"])
    func `follow the rules of CONTRIBUTING`(folder: String) throws {
        var count = 0
        for file in try Package.files(in: folder) {
            for declaration in TypeDeclaration.all(in: file) {
                count += 1
                guard exceptions[declaration.name] == nil else { continue }
                let problem = declaration.errorNameProblem
                #expect(
                    problem == nil, "\(file.path):\(declaration.line): \(declaration.name)")
            }
        }
        #expect(count > 500)
    }

    @Test func `have no exception that is not needed`() throws {
        let wrong = try Package.files(in: "Sources").flatMap(TypeDeclaration.all).filter {
            $0.errorNameProblem != nil
        }
        #expect(Set(wrong.map(\.name)) == Set(exceptions.keys))
    }

    @Test(
        arguments: [
            ("struct ParseError: Error {}", nil),
            ("enum DigestReason: String, Error {", nil),
            ("enum DigestReason: String {", nil),
            ("extension Outer.ParseError: Error {}", nil),
            ("struct Table<Value: Error>: Sendable {", nil),
            ("extension Result where Failure: Error {", nil),
            ("struct Wrong: Sendable {  // Error", nil),
            ("struct Errors {", nil),
            ("struct Wrong: Error {}", "what conforms to Error ends in Error or Reason"),
            ("struct Wrong: Sendable, Error {", "what conforms to Error ends in Error or Reason"),
            (
                "    package enum Wrong:\n        Sendable,\n        Swift.Error\n    {",
                "what conforms to Error ends in Error or Reason"
            ),
            (
                "@frozen public struct Wrong<A: Sendable>: @unchecked Sendable & Error {",
                "what conforms to Error ends in Error or Reason"
            ),
            ("extension Outer.Wrong: Error {", "what conforms to Error ends in Error or Reason"),
            (
                "final class Wrong: LocalizedError where A: B {",
                "what conforms to Error ends in Error or Reason"
            ),
            ("enum Error: Swift.Error {", "an error type has a name of its own"),
            ("enum ProxyFailure {", "it ends in Error, or in Reason if it states why"),
            ("private struct Refusal: Error {", "it ends in Error, or in Reason if it states why"),
        ] as [(String, String?)])
    func `that break the rules are found`(text: String, problem: String?) throws {
        let lines = text.split(separator: "\n").map(String.init)
        let found = TypeDeclaration.all(in: SourceFile(path: "Sources/X.swift", lines: lines))
        #expect(found.map(\.line) == [1])
        #expect(found.first?.errorNameProblem == problem)
    }

    static let linesWithoutTypes = [
        "class func wrong() throws(ParseError) {", "import struct Foundation.Failure",
        "// struct Failure", "let text = \"struct Failure {\"", "/// The enum Failure",
        "typealias Failure = ClientError", "for error: Error in errors {",
    ]

    @Test(arguments: linesWithoutTypes)
    func `are not looked for where no type is declared`(line: String) {
        let file = SourceFile(path: "Sources/X.swift", lines: [line])
        #expect(TypeDeclaration.all(in: file).isEmpty)
    }
}
