import PinfoldConfiguration
import Testing

private func forms(_ path: String) throws -> (canonical: String, lenient: String) {
    let bytes = Array(path.utf8)
    let read = PathForms(of: bytes.span)
    let forms = try #require(read)
    return (
        String(decoding: forms.canonical, as: UTF8.self),
        String(decoding: forms.lenient, as: UTF8.self)
    )
}

@Suite("The forms of a path")
struct PathFormsTests {
    @Test(
        arguments: [
            ("", "/", "/"), ("/", "/", "/"), ("//", "/", "/"), ("/a", "/a", "/a"),
            ("/a/", "/a/", "/a/"), ("//a///b", "/a/b", "/a/b"), ("/./a", "/a", "/a"),
            ("/a/.", "/a/", "/a/"), ("/a/..", "/", "/"), ("/a/../b", "/b", "/b"),
            ("/../../b", "/b", "/b"), ("/a/b/../../c/", "/c/", "/c/"), ("/...", "/...", "/..."),
            ("/%61", "/a", "/a"), ("/%7E%2d%5F%2E", "/~-_.", "/~-_."),
            ("/a/%2e%2E/b", "/b", "/b"), ("/%2e/b", "/b", "/b"),
            ("/a;x=1/b;y", "/a/b", "/a/b"), ("/a/..;/b", "/b", "/b"), ("/;a", "/", "/"),
            ("/a/.;x/b", "/a/b", "/a/b"), ("/a%3Bx", "/a%3Bx", "/a"),
            ("/a%2Fb", "/a%2Fb", "/a/b"), ("/a/%2e%2e%2fb", "/a/..%2fb", "/b"),
            ("/a%5C..%5Cb", "/a%5C..%5Cb", "/b"), ("/a\\..\\b", "/a\\..\\b", "/b"),
            ("/%252e%252e/b", "/%252e%252e/b", "/b"), ("/%25252e/b", "/%25252e/b", "/b"),
            ("/%", "/%", "/%"), ("/%4", "/%4", "/%4"), ("/%zz", "/%zz", "/%zz"),
            ("/%c3%a9", "/%c3%a9", "/\u{E9}"), ("/a%20b", "/a%20b", "/a b"),
        ])
    func `dots, slashes, parameters and needless encoding make no difference`(
        path: String, canonical: String, lenient: String
    ) throws {
        let forms = try forms(path)
        #expect(forms.canonical == canonical)
        #expect(forms.lenient == lenient)
    }

    @Test(arguments: ["/", "/a", "/a/", "/a/b.c", "/a.b/c..d", "/~x/-_", "/@a/b:c,d"])
    func `a plain path is its only form`(path: String) throws {
        let bytes = Array(path.utf8)
        let isPlain = PathForms.isPlain(bytes.span)
        #expect(isPlain)
        #expect(try forms(path) == (path, path))
    }

    @Test(
        arguments: [
            ("/a%00b", "/a"), ("/a%3Fb", "/a"), ("/a%23b", "/a"), ("/a%2500b", "/a"),
            ("/a%3F/../b", "/a"), ("/a/..%2Fb%00c", "/b"), ("/a%20b", "/a b"), ("/%00", "/"),
            ("/a;x%3F", "/a"), ("/a/b", "/a/b"), ("/a%252523/c", "/a"),
        ])
    func `a lenient server may end a path where an octet was encoded`(
        path: String, cut: String
    ) throws {
        let bytes = Array(path.utf8)
        let read = PathForms(of: bytes.span)
        let forms = try #require(read)
        #expect(String(decoding: forms.cut, as: UTF8.self) == cut)
    }

    @Test func `four levels of encoding are read, and more are refused`() throws {
        #expect(try forms("/%25252561").lenient == "/a")
        for path in ["/%2525252561", "/x%252525252561y", "/%252525252525252e"] {
            let bytes = Array(path.utf8)
            let isRead = PathForms(of: bytes.span) != nil
            #expect(!isRead, "\(path)")
        }
    }

    @Test(arguments: ["", "a", "//", "/a//b", "/.a", "/a/..", "/%61", "/a;b", "/a\\b"])
    func `what might have others is not plain`(path: String) {
        let bytes = Array(path.utf8)
        let isPlain = PathForms.isPlain(bytes.span)
        #expect(!isPlain)
    }

    @Test func `a path that is called plain has no other form`() {
        let alphabet = Array("/.a;%2e\\5c".utf8)
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<20_000 {
            let count = Int.random(in: 0...12, using: &generator)
            let path =
                [UInt8(ascii: "/")] + (0..<count).map { _ in alphabet.randomElement() ?? 0x61 }
            guard PathForms.isPlain(path.span) else { continue }
            let forms = PathForms(of: path.span)
            #expect(forms?.canonical == path && forms?.lenient == path && forms?.cut == path)
        }
    }
}

@Suite("Which paths are meant")
struct PathPatternTests {
    @Test(
        arguments: [
            ("/", "/", true), ("/", "/a", false), ("/a", "/a", true), ("/a", "/a/", false),
            ("/a", "/A", false), ("/a/", "/a/", true), ("/a/", "/a", false),
            ("/**", "/", true), ("/**", "/a", true), ("/**", "/a/b/", true),
            ("/v1/**", "/v1", true), ("/v1/**", "/v1/", true), ("/v1/**", "/v1/a/b", true),
            ("/v1/**", "/v10", false), ("/v1/**", "/", false),
            ("/*", "/a", true), ("/*", "/", true), ("/*", "/a/b", false),
            ("/a/*/c", "/a/b/c", true), ("/a/*/c", "/a/b/d", false), ("/a/*/c", "/a/c", false),
            ("/a*c", "/abbc", true), ("/a*c", "/ac", true), ("/a*c", "/acd", false),
            ("/*.js", "/x.js", true), ("/*.js", "/x.js.map", false), ("/**/*.js", "/x.js", true),
            ("/**/*.js", "/a/b/x.js", true), ("/**/*.js", "/a/b/x.css", false),
            ("/**/b/**", "/a/b", true), ("/**/b/**", "/b/c", true), ("/**/b/**", "/a/c", false),
            ("/a/**/b/**/c", "/a/b/c", true), ("/a/**/b/**/c", "/a/x/b/y/z/c", true),
            ("/a/**/b/**/c", "/a/x/c", false), ("/a/**/b", "/a/b/c/b", true),
            ("/**/**/a", "/a", true), ("/**/**/a", "/x/y/a", true),
            ("/*a*b*", "/xaxbx", true), ("/*a*b*", "/xbxa", false),
        ])
    func `stars stand for parts of segments, and double stars for segments`(
        text: String, path: String, matches: Bool
    ) throws {
        let pattern = try PathPattern(text)
        let bytes = Array(path.utf8)
        let isMatch = pattern.matches(bytes.span)
        #expect(isMatch == matches)
        #expect(pattern.description == text)
    }

    @Test(
        arguments: [
            ("", PathPatternError.noSlash), ("a", .noSlash), ("*", .noSlash), ("/a?b", .query),
            ("/a#b", .query), ("/a b", .character), ("/é", .character), ("/a\\b", .character),
            ("//", .notCanonical), ("/a/../b", .notCanonical), ("/./a", .notCanonical),
            ("/a;b", .notCanonical), ("/%61", .encoded),
            ("/caf%C3%A9/**", .encoded), ("/a**", .wildcard),
            ("/**a/b", .wildcard), ("/***", .wildcard),
        ])
    func `what no canonical path can match is no pattern`(text: String, error: PathPatternError) {
        #expect(throws: error) { try PathPattern(text) }
    }

    @Test func `many stars take no longer than both lengths together`() throws {
        let pattern = try PathPattern("/" + String(repeating: "*a", count: 200) + "b")
        let deep = try PathPattern(String(repeating: "/**/a", count: 100) + "/b")
        let flat = Array(("/" + String(repeating: "a", count: 8000)).utf8)
        let nested = Array(String(repeating: "/a", count: 4000).utf8)
        let (isFlat, isDeep) = (pattern.matches(flat.span), deep.matches(nested.span))
        #expect(!isFlat && !isDeep)
    }
}

@Suite("Hours of the week")
struct WeeklyHoursTests {
    /// The minute of a day, Monday being 0.
    private static func minute(_ day: Int, _ hour: Int, _ minute: Int = 0) -> Int {
        (day * 24 + hour) * 60 + minute
    }

    @Test(
        arguments: [
            ("mon", minute(0, 0), true), ("mon", minute(0, 23, 59), true),
            ("mon", minute(1, 0), false), ("sun", minute(6, 12), true),
            ("mon-fri", minute(4, 12), true), ("mon-fri", minute(5, 12), false),
            ("sat-mon", minute(6, 1), true), ("sat-mon", minute(0, 1), true),
            ("sat-mon", minute(1, 1), false), ("mon,wed,fri-sat", minute(2, 1), true),
            ("mon,wed,fri-sat", minute(1, 1), false),
            ("08:00-18:00", minute(3, 8), true), ("08:00-18:00", minute(3, 17, 59), true),
            ("08:00-18:00", minute(3, 18), false), ("08:00-18:00", minute(3, 7, 59), false),
            ("00:00-24:00", minute(3, 23, 59), true),
            ("mon-fri 08:00-18:00", minute(0, 9), true),
            ("mon-fri 08:00-18:00", minute(6, 9), false),
            // Into the next day.
            ("fri 22:00-06:00", minute(4, 22), true), ("fri 22:00-06:00", minute(5, 5, 59), true),
            ("fri 22:00-06:00", minute(5, 6), false), ("fri 22:00-06:00", minute(4, 5), false),
            ("sun 22:00-06:00", minute(0, 1), true), ("sun 22:00-00:00", minute(0, 0), false),
        ])
    func `days and hours are meant together`(text: String, minute: Int, isWithin: Bool) throws {
        let hours = try #require(WeeklyHours(text))
        #expect(hours.contains(minuteOfWeek: minute) == isWithin)
        #expect(hours.description == text)
    }

    @Test(
        arguments: [
            "", " ", "monday", "Mon", "mon-", "-fri", "mon,", "mon-tue-wed", "8:00-18:00",
            "08:00", "08:00-", "08:00-08:00", "24:00-08:00", "08:60-09:00", "08:00-25:00",
            "08:00-24:01", "mon  08:00-18:00", "08:00-18:00 mon", "mon 08:00-18:00 tue",
        ])
    func `other texts are not`(text: String) {
        #expect(WeeklyHours(text) == nil)
    }
}
