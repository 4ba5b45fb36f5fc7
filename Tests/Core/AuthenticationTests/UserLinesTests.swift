import Testing

@testable import Authentication

@Suite("Changes of files of users")
struct UserLinesTests {
    private func set(_ name: String, in text: String) -> String {
        String(
            decoding: UserLines.setting(name, to: "NEW", in: Array(text.utf8)), as: UTF8.self)
    }

    private func remove(_ name: String, from text: String) -> String? {
        UserLines.removing(name, from: Array(text.utf8)).map { String(decoding: $0, as: UTF8.self) }
    }

    @Test(arguments: [
        ("", "ann:NEW\n"), ("bob:x", "bob:x\nann:NEW\n"), ("bob:x\n", "bob:x\nann:NEW\n"),
        ("ann:old", "ann:NEW\n"), ("# ann:\nann:a\nbob:b\n", "# ann:\nann:NEW\nbob:b\n"),
        (" ann :a\r\nann:b\n\nbob:b", "ann:NEW\n\nbob:b\n"), ("annx:a\n", "annx:a\nann:NEW\n"),
        ("ann\n", "ann\nann:NEW\n"),
    ])
    func `a user's line is replaced or added`(_ before: String, _ after: String) {
        #expect(set("ann", in: before) == after)
        #expect(set("ann", in: after) == after)
    }

    @Test(arguments: [
        ("ann:a\nbob:b\n", "bob:b\n"), ("bob:b\nann:a", "bob:b\n"), ("ann:a", ""),
        ("# x\nann:a\n\nann:b\n", "# x\n\n"),
    ])
    func `a user's lines are removed`(_ before: String, _ after: String) {
        #expect(remove("ann", from: before) == after)
        #expect(remove("ann", from: after) == nil)
    }

    @Test func `only names that a file can have are names`() {
        for name in ["ann", "jürgen", "a.b@c"] { #expect(UserLines.isName(name)) }
        for name in ["", "a b", "a:b", "a,b", "a\n"] { #expect(!UserLines.isName(name)) }
    }
}
