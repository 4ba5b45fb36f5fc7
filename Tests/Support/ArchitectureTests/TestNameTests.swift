import Testing

@Suite("The names of tests")
struct TestNameTests {
    @Test func `every test is named by a sentence, and every suite has a title`() throws {
        var count = 0
        for file in try Package.files(in: "Tests") {
            for declaration in TestDeclaration.all(in: file) {
                count += 1
                #expect(
                    declaration.problem == nil,
                    "\(file.path):\(declaration.line): \(declaration.name)")
            }
        }
        #expect(count > 1000)
    }

    @Test(
        arguments: [
            ("@Test func `a pin is compared`() {", nil),
            ("@Test func `every test of a byte agrees`() {", nil),
            ("@Test(arguments: [1])\nfunc `a pin is compared`(n: Int) {", nil),
            ("@Test(.enabled(if: x != \"\"))\nfunc `HEAD is GET without content`() {", nil),
            ("@Suite(\"Pins\")\nstruct PinTests {", nil),
            (
                "@Test(\"a pin is compared\") func pin() {",
                "a test has one name, its function's"
            ),
            (
                "@Test(\n    \"a pin is compared\")\nfunc `a pin is compared`() {",
                "a test has one name, its function's"
            ),
            (
                "@Test func aPinIsCompared() {",
                "a test's name is a sentence between backticks"
            ),
            (
                "@Test func `the name \"a\" is compared`() {",
                "XML reports break on such a character"
            ),
            ("@Test func `pins`() {", "one word is no sentence"),
            ("@Test func ` `() {", "one word is no sentence"),
            ("@Test func `A pin is compared`() {", "a sentence goes on from its suite's title"),
            (
                "@Test func `a pin is compared.`() {",
                "a sentence in a list ends without a full stop"
            ),
            (
                "@Test func `comparing pins works`() {",
                "works has no meaning, or is abbreviated"
            ),
            (
                "@Test func `test that a pin is compared`() {",
                "a test is not named a test"
            ),
            ("@Suite struct PinTests {", "a suite has a title"),
            ("@Suite(.serialized)\nstruct PinTests {", "a suite has a title"),
            ("@Suite(\"Pins\") struct Pins {", "a suite's type ends with Tests"),
        ] as [(String, String?)])
    func `anything but a sentence or a title is reported`(text: String, problem: String?) throws {
        let file = SourceFile(
            path: "Tests/X.swift", lines: text.split(separator: "\n").map(String.init))
        let found = TestDeclaration.all(in: file)
        #expect(found.map(\.line) == [1])
        #expect(found.first?.problem == problem)
    }

    @Test func `what only mentions an attribute declares nothing`() {
        let file = SourceFile(
            path: "Tests/X.swift", lines: ["// @Test func", "let text = \"@Suite\"", "@testable"])
        #expect(TestDeclaration.all(in: file).isEmpty)
    }
}
