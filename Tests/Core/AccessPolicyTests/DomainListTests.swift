import Testing

@testable import AccessPolicy

@Suite("Lists of domains")
struct DomainListTests {
    @Test(
        arguments: [
            ("example.test", true), ("EXAMPLE.Test", true), ("example.test.", true),
            ("www.example.test", true), ("a.b.c.d.example.test.", true), ("test", false),
            ("xexample.test", false), ("example.test.evil", false), ("", false), (".", false),
            ("..example.test", true), ("example..test", false), ("example.test..", false),
            ("alone.test", false), ("a.below.test", true), ("a.b.below.test", true),
            ("below.test", false), ("10.1.2.3", true), ("11.1.2.3", false),
            ("::ffff:10.1.2.3", true), ("[::ffff:a00:1]", true), ("[2001:db8::1]", true),
            ("2001:db8::1", true), ("2001:db9::1", false), ("10.1.2.3.", true), ("10.1.2", false),
        ])
    func `cover names, those below them, and networks`(host: String, isCovered: Bool) {
        let list = list("example.test\n*.below.test\n10.0.0.0/8\n2001:db8::/32\n")
        #expect(list.contains(host) == isCovered)
    }

    @Test func `of hosts files cover the names alone`() {
        let list = list("0.0.0.0 example.test\n0.0.0.0 www.example.test\n")
        #expect(list.contains("example.test") && list.contains("WWW.example.test."))
        #expect(!list.contains("a.example.test") && !list.contains("a.www.example.test"))
        #expect(!list.contains("test"))
    }

    @Test func `have exceptions that win in their file only`() {
        let filter = """
            ||example.test^
            @@||good.example.test^
            ||bad.good.example.test^
            ||10.0.0.1^
            @@||10.0.0.1^
            @@||other.test^
            """
        let one = list(filter)
        #expect(one.contains("example.test") && one.contains("a.example.test"))
        for host in ["good.example.test", "a.good.example.test", "bad.good.example.test"] {
            #expect(!one.contains(host))
        }
        #expect(!one.contains("10.0.0.1") && !one.contains("other.test"))
        // Whichever file comes first.
        let plain = "bad.good.example.test\n10.0.0.1\nother.test\n"
        for both in [list(filter, plain), list(plain, filter)] {
            #expect(both.contains("a.bad.good.example.test") && both.contains("10.0.0.1"))
            #expect(both.contains("other.test") && !both.contains("good.example.test"))
            #expect(both.contains("example.test"))
        }
    }

    @Test func `of several files cover what each covers`() {
        let list = list("a.test\n", "0.0.0.0 b.test\n", "address=/c.test/\n", "a.test\nd.test\n")
        for host in ["x.a.test", "b.test", "x.c.test", "d.test"] { #expect(list.contains(host)) }
        #expect(!list.contains("x.b.test"))
        #expect(list.nameCount == 4 && list.networkCount == 0)
    }

    @Test func `of nothing cover nothing`() {
        for list in [DomainList(), list(), list(""), list("# nothing\n")] {
            for host in ["", "a", "a.test", "10.0.0.1", "::1"] { #expect(!list.contains(host)) }
            #expect(list.nameCount == 0 && list.networkCount == 0)
        }
    }

    @Test func `count what they have once`() {
        let list = list("a.test\nA.test.\nb.a.test\n10.0.0.0/9\n10.128.0.0/9\n10.1.1.1\n::1\n")
        #expect(list.nameCount == 2)
        #expect(list.networkCount == 2)
    }

    @Test func `are equal if they cover the same by the same entries`() {
        let some = list("a.test\nb.test\n10.0.0.0/8\n")
        #expect(some == some)
        #expect(some == list("# other text\nB.test\na.test\na.test\n10.0.0.0/8\n"))
        #expect(some != list("a.test\n10.0.0.0/8\n"))
        #expect(some != list("a.test\nb.test\n"))
        #expect(list("a.test\n") != list("*.a.test\n"))
        #expect(list("||a.test^\n") != list("||a.test^\n@@||b.test^\n"))
        var numbers = Numbers(state: 2)
        #expect(list("a.test\n") != list("a.test\n", key: DomainListKey(using: &numbers)))
        #expect(DomainList() == DomainList())
    }

    // MARK: Depth

    @Test func `have names of any number of labels`() {
        for count in 1...127 {
            let name = Array(repeating: "a", count: count).joined(separator: ".")
            let plain = list("\(name)\n", format: .domains)
            #expect(plain.contains(name))
            #expect(plain.contains("b." + name))
            #expect(!plain.contains(String(name.dropFirst(2))))
            let alone = list("0.0.0.0 \(name)\n", format: .hosts)
            #expect(alone.contains(name))
            #expect(!alone.contains("b." + name))
        }
    }

    @Test func `are asked for hosts of any length`() {
        let list = list("example.test\n\(String(repeating: "a.", count: 126))a\n")
        for count in [0, 1, 2, 124, 125, 126, 127, 128, 129, 1000] {
            let labels = String(repeating: "x.", count: count)
            #expect(list.contains(labels + "example.test"))
            #expect(!list.contains(labels + "example.tesu"))
            #expect(!list.contains(labels + "b.a.a.a"))
        }
        #expect(!list.contains(String(repeating: "x", count: 10_000)))
        #expect(list.contains(String(repeating: "x", count: 10_000) + ".example.test"))
    }

    @Test func `tell every place of a dot in a word apart`() {
        // Ends of every length around the words of eight bytes in which a host is read.
        let name = "abcdefghijklmnopqrstuvwxyz"
        for length in 1...26 {
            for other in 1...26 {
                let entry = "\(name.prefix(other)).\(name.suffix(length))"
                let list = list("\(entry)\n", format: .domains)
                #expect(list.contains(entry) && list.contains("Q." + entry.uppercased()))
                #expect(!list.contains("q" + entry))
                #expect(!list.contains(String(entry.dropFirst())))
                #expect(!list.contains(String(name.suffix(length))))
            }
        }
    }

    // MARK: Against a model

    @Test func `cover the same as a model that compares every name`() {
        var numbers = Numbers(state: 4)
        for _ in 0..<40 {
            let names = (0..<Int.random(in: 1...60, using: &numbers)).map { _ in
                Self.name(using: &numbers)
            }
            let reaches = names.map { _ in DomainReach.allCases.randomElement(using: &numbers) }
            var builder = DomainListBuilder(key: .fixed, bytes: 0)
            for (name, reach) in zip(names, reaches) {
                guard let reach else { continue }
                builder.add(name.utf8.span, reach)
            }
            builder.endFile()
            let list = builder.finish()
            for _ in 0..<300 {
                let host = Self.name(using: &numbers)
                var isCovered = false
                var isException = false
                for (name, reach) in zip(names, reaches) {
                    let isBelow = host.hasSuffix("." + name)
                    switch reach {
                    case .nameAlone: isCovered = isCovered || host == name
                    case .nameAndBelow: isCovered = isCovered || isBelow || host == name
                    case .below: isCovered = isCovered || isBelow
                    case .exception, nil: isException = isException || isBelow || host == name
                    }
                }
                #expect(list.contains(host) == (isCovered && !isException), "\(host) \(names)")
            }
        }
    }

    /// One to five labels of one or two letters out of two.
    private static func name(using numbers: inout Numbers) -> String {
        (0..<Int.random(in: 1...5, using: &numbers)).map { _ in
            ["a", "b", "ab", "ba"].randomElement(using: &numbers) ?? ""
        }.joined(separator: ".")
    }

    @Test func `have many names`() {
        let count = 200_000
        func name(_ number: Int) -> String {
            "n\(number &* 2_654_435_761 % 1_000_003).a\(number % 7).test"
        }
        var builder = DomainListBuilder(key: .fixed, bytes: count * 8)
        var pauses = 0
        var text: [UInt8] = []
        for number in 0..<count { text += Array("\(name(number))\n".utf8) }
        builder = DomainListBuilder(key: .fixed, bytes: count, pausing: { pauses += 1 })
        var reader = DomainListReader()
        reader.read(text.span, into: &builder)
        #expect(reader.finish(into: &builder).entries == count)
        builder.endFile()
        let list = builder.finish()
        #expect(list.nameCount == count)
        #expect(pauses >= 256)
        for number in stride(from: 0, to: count, by: 10) {
            #expect(list.contains("www.\(name(number))"))
            #expect(!list.contains("x\(name(number))"))
        }
    }
}
