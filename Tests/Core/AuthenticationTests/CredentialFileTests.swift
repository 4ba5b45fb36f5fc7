import Testing

@testable import Authentication

/// Hashes of "secret", made by libxcrypt and libargon2.
enum Sample {
    static let bcrypt = "$2y$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW"
    static let sha256 = "$5$rounds=1000$saltsalt$eKLZU9t9OoPWrqOQsoTIKG0aYkZ5rGOoOQhiIvoSWX2"
    static let sha512 =
        "$6$saltsalt$TVLlQcbpFVof5W3Yz4DTP6gRstiNuHwwTt6GLc1E5n0U0aDehy0S5knV8wiOQSpT0Y77vwPZN.Pq"
        + ".H91p5hVO1"
    static let yescrypt =
        "$y$j75$k2XAnEHBqQ1Ct2aMXFKNa/$Tg4ZRR7tz/WRlmYbADZh9OJYakPewgSPQqW55EXAJ14"
    static let argon2id =
        "$argon2id$v=19$m=256,t=1,p=2$c2FsdHNhbHQ$vk/XkFcG6URnNFQnhXvLif3wO9Xek4pAzjsFD1qhB5s"
    static let argon2i =
        "$argon2i$v=19$m=256,t=1,p=1$c2FsdHNhbHQ$ns/h+yNBKLcUed1NTWxGYsr3gYq/M0x+1qOyt47rlqE"
}

func users(_ text: String) throws(CredentialsFileError) -> UserFile {
    try UserFile(path: "/users", content: Array(text.utf8))
}

func groups(_ text: String) throws(CredentialsFileError) -> GroupFile {
    try GroupFile(path: "/groups", content: Array(text.utf8))
}

func tokens(_ text: String) throws(CredentialsFileError) -> TokenFile {
    try TokenFile(path: "/tokens", content: Array(text.utf8))
}

private func error(_ body: () throws(CredentialsFileError) -> some Any) -> CredentialsFileError? {
    do throws(CredentialsFileError) {
        _ = try body()
        return nil
    } catch {
        return error
    }
}

@Suite("Files of users")
struct UserFileTests {
    @Test(arguments: [
        (Sample.bcrypt, PasswordHash.Scheme.bcrypt(cost: 4)),
        ("$2a$12$" + String(repeating: "a", count: 53), .bcrypt(cost: 12)),
        ("$2b$16$" + String(repeating: "/", count: 53), .bcrypt(cost: 16)),
        (Sample.sha256, .sha256(rounds: 1000)),
        (Sample.sha512, .sha512(rounds: 5000)),
        (Sample.yescrypt, .yescrypt(parameters: "j75")),
        (
            Sample.argon2id,
            .argon2(
                Argon2Cost(variant: .id, version: 0x13, memoryKiB: 256, passes: 1, lanes: 2))
        ),
        (
            Sample.argon2i,
            .argon2(Argon2Cost(variant: .i, version: 0x13, memoryKiB: 256, passes: 1, lanes: 1))
        ),
    ])
    func `every function that is checked is read with its cost`(
        _ hash: String, _ scheme: PasswordHash.Scheme
    ) throws {
        let file = try users("# a comment\n\nann:\(hash)\r\n  bob : \(hash)  \n")
        #expect(file.users == ["ann", "bob"])
        #expect(file.hash(of: "ann")?.scheme == scheme)
        #expect(file.hash(of: "ann")?.text == hash)
        #expect(file.hash(of: "ann") == file.hash(of: "bob"))
        #expect(file.hash(of: "eve") == nil)
    }

    @Test(arguments: [
        ("{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=", "SHA-1"),
        ("{SSHA}0000000000000000", "SHA-1"),
        ("$apr1$salt$HYnGBRZwNmLL9bzwsOp0E.", "MD5"),
        ("$1$salt$HYnGBRZwNmLL9bzwsOp0E.", "MD5"),
        ("rqXexS6ZhobKA", "DES"),
        ("correct horse", "plain text"),
        ("secret", "plain text"),
        ("", "is missing"),
        (
            "$argon2d$v=19$m=256,t=1,p=1$c2FsdHNhbHQ$" + String(repeating: "A", count: 43),
            "function"
        ),
        ("$7$CU..../....salt$hash", "function"),
        ("$2y$03$" + String(repeating: "a", count: 53), "cost of 3"),
        ("$2y$17$" + String(repeating: "a", count: 53), "cost of 17"),
        (String(Sample.bcrypt.dropLast()), "complete bcrypt"),
        (Sample.bcrypt + "a", "complete bcrypt"),
        ("$2y$4$" + String(repeating: "a", count: 53), "complete bcrypt"),
        (String(Sample.sha512.dropLast()), "complete SHA-crypt"),
        ("$5$rounds=999$salt$" + String(repeating: "a", count: 43), "rounds"),
        ("$5$rounds=5000001$salt$" + String(repeating: "a", count: 43), "rounds"),
        (
            "$5$" + String(repeating: "s", count: 17) + "$" + String(repeating: "a", count: 43),
            "SHA"
        ),
        ("$y$jET$salt$" + String(repeating: "a", count: 43), "yescrypt parameters"),
        ("$y$j9z$salt$" + String(repeating: "a", count: 43), "yescrypt parameters"),
        ("$y$j9T$$" + String(repeating: "a", count: 43), "complete yescrypt"),
        (
            "$argon2id$v=19$m=1048577,t=1,p=1$c2FsdHNhbHQ$" + String(repeating: "A", count: 43),
            "argon2 param"
        ),
        (
            "$argon2id$v=19$m=8,t=1,p=2$c2FsdHNhbHQ$" + String(repeating: "A", count: 43),
            "argon2 param"
        ),
        (
            "$argon2id$v=18$m=256,t=1,p=1$c2FsdHNhbHQ$" + String(repeating: "A", count: 43),
            "complete argon2"
        ),
        (
            "$argon2id$v=19$t=1,m=256,p=1$c2FsdHNhbHQ$" + String(repeating: "A", count: 43),
            "complete argon2"
        ),
        (
            "$argon2id$v=19$m=256,t=1,p=1$c2FsdHNhbHQ=$" + String(repeating: "A", count: 43),
            "complete argon2"
        ),
    ])
    func `any other form is refused with its line and without the secret`(
        _ hash: String, _ problem: String
    ) {
        let found = error { () throws(CredentialsFileError) in
            try users("ann:\(Sample.bcrypt)\n\nbob:\(hash)\n")
        }
        #expect(found?.line == 3)
        #expect(found?.problem.contains(problem) == true, "\(found?.problem ?? "")")
        #expect(found?.problem.contains("\"bob\"") == true)
        #expect(found?.expected.isEmpty == false)
        for text in [found?.problem, found?.expected] where hash.count > 4 {
            #expect(text?.contains(hash) == false)
        }
    }

    /// A file that is cut anywhere is refused, or has the users of its complete lines.
    @Test func `a file cut at any byte has no half entries`() throws {
        let lines = ["ann:\(Sample.bcrypt)", "bob:\(Sample.sha512)"]
        let text = lines.joined(separator: "\n")
        for count in 0...text.utf8.count {
            let start = String(text.prefix(count))
            let file = try? users(start)
            switch count {
            case 0: #expect(file?.isEmpty == true)
            case lines[0].count, lines[0].count + 1: #expect(file?.users == ["ann"])
            case text.utf8.count: #expect(file?.users == ["ann", "bob"])
            default: #expect(file == nil, "\(start)")
            }
        }
    }

    @Test(arguments: [
        ("ann", 1, "colon"), (":\(Sample.bcrypt)", 1, "name of a user"),
        ("a b:\(Sample.bcrypt)", 1, "name of a user"),
        ("a,b:\(Sample.bcrypt)", 1, "name of a user"),
        ("a\u{202e}b:\(Sample.bcrypt)", 1, "name of a user"),
        ("a\u{85}b:\(Sample.bcrypt)", 1, "name of a user"),
        ("a\u{a0}b:\(Sample.bcrypt)", 1, "name of a user"),
        ("\n" + String(repeating: "n", count: 257) + ":\(Sample.bcrypt)", 2, "name of a user"),
        ("ann:\(Sample.bcrypt)\nann:\(Sample.sha256)", 2, "again (first on line 1)"),
        // The same name in two normal forms.
        ("\u{e9}:\(Sample.bcrypt)\ne\u{301}:\(Sample.sha256)", 2, "again"),
    ])
    func `a line that names nobody, or somebody again, is refused`(
        _ text: String, _ line: Int, _ problem: String
    ) {
        let found = error { () throws(CredentialsFileError) in try users(text) }
        #expect(found?.line == line)
        #expect(found?.problem.contains(problem) == true, "\(found?.problem ?? "")")
    }

    @Test func `names of invalid UTF-8 are refused`() {
        let found = error { () throws(CredentialsFileError) in
            try UserFile(path: "/users", content: [0xFF] + Array(":\(Sample.bcrypt)".utf8))
        }
        #expect(found?.line == 1)
    }

    @Test func `unknown users are compared with the commonest scheme and cost`() throws {
        #expect(try users("").decoy == nil)
        let file = try users(
            """
            a:\(Sample.sha512)
            b:\(Sample.bcrypt)
            c:\(Sample.bcrypt)
            d:$2y$12$\(String(repeating: "a", count: 53))
            """)
        #expect(file.decoy?.text == Sample.bcrypt)
        #expect(try users("a:\(Sample.sha512)\nb:\(Sample.bcrypt)").decoy?.text == Sample.sha512)
    }

    @Test func `no hash is printed`() throws {
        let hash = try #require(try users("ann:\(Sample.bcrypt)").hash(of: "ann"))
        #expect(!"\(hash) \(String(reflecting: hash))".contains("$"))
    }
}

@Suite("Files of groups")
struct GroupFileTests {
    @Test func `groups and their members are read`() throws {
        let file = try groups("# x\nstaff: ann bob\r\n\nadmins:\tann\nstaff: eve ann\nempty:\n")
        #expect(file.groups(of: "ann") == ["admins", "staff"])
        #expect(file.groups(of: "bob") == ["staff"])
        #expect(file.groups(of: "eve") == ["staff"])
        #expect(file.groups(of: "nobody") == [])
        #expect(file.names == ["admins", "empty", "staff"])
        #expect(file.members == ["ann": 2, "bob": 2, "eve": 5])
    }

    @Test(arguments: [
        ("staff ann", 1, "colon"), ("\nst aff: ann", 2, "name of a group"),
        ("staff: ann,bob", 1, "member"),
    ])
    func `other lines are refused`(_ text: String, _ line: Int, _ problem: String) {
        let found = error { () throws(CredentialsFileError) in try groups(text) }
        #expect(found?.line == line)
        #expect(found?.problem.contains(problem) == true)
    }
}

/// `printf %s opensesame | sha256sum`
let tokenDigest = "d9fb92e3bbe65be1f1aad4a82eef4567f7a1ebe2cd110c8049b9698be7a70c88"

@Suite("Files of tokens")
struct TokenFileTests {
    private func digest(of token: String) -> ProofDigest { ProofDigest(of: token.utf8.span) }

    @Test func `a token is found by its SHA-256`() throws {
        let file = try tokens(
            """
            # tokens
            ci:\(tokenDigest):build,deploy:2027-01-31T12:00:00Z
            """)
        let entry = try #require(file[digest(of: "opensesame")])
        #expect(entry.user == "ci")
        #expect(entry.groups == ["build", "deploy"])
        #expect(entry.method == .bearer)
        #expect(entry.expires == 1_801_396_800)
        #expect(file[digest(of: "opensesam")] == nil)
        #expect(file[digest(of: "")] == nil)
    }

    @Test(arguments: [
        (":\(tokenDigest)", 1, "name of a token"), ("ci:\(tokenDigest.dropLast())", 1, "64"),
        ("ci:\(tokenDigest)0", 1, "64"), ("ci:opensesame", 1, "64"), ("ci:", 1, "64"),
        ("ci:\(tokenDigest):a b", 1, "group"), ("ci:\(tokenDigest):a,", 1, "group"),
        ("ci:\(tokenDigest)::tomorrow", 1, "date"), ("ci:\(tokenDigest)::2027-02-30", 1, "date"),
        ("ci:\(tokenDigest)::", 1, "date"),
        ("ci:\(tokenDigest)\n\nme:\(tokenDigest.uppercased())", 3, "line 1"),
    ])
    func `other lines are refused without the secret`(
        _ text: String, _ line: Int, _ problem: String
    ) {
        let found = error { () throws(CredentialsFileError) in try tokens(text) }
        #expect(found?.line == line)
        let all = "\(found?.problem ?? "") \(found?.expected ?? "")"
        #expect(all.contains(problem), "\(all)")
        #expect(!all.contains("opensesame") && !all.contains(tokenDigest.prefix(20)))
    }

    @Test func `groups and the end may be left out, and a name may have several tokens`() throws {
        let other = String(repeating: "ab", count: 32)
        let file = try tokens("ci:\(tokenDigest)\nci:\(other)::2027-01-31\n")
        #expect(file[digest(of: "opensesame")]?.groups == [])
        #expect(file[digest(of: "opensesame")]?.expires == nil)
        #expect(file[digest(of: "")] == nil)
    }

    @Test func `the order of the file is kept`() throws {
        let lines = (0..<40).map { number in
            let digit = String(number, radix: 16)
            return "ci:\(String(repeating: "0", count: 64 - digit.count))\(digit):g\(number)"
        }
        let file = try tokens(lines.joined(separator: "\n"))
        #expect(file.everyIdentity.map(\.groups) == (0..<40).map { ["g\($0)"] })
    }
}
