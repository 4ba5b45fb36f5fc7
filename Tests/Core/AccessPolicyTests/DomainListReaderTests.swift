import AccessPolicy
import Testing

@Suite("Files of lists of domains")
struct DomainListReaderTests {
    /// A text, and what is read of it.
    struct Example: CustomTestStringConvertible {
        var text: String
        var format: DomainListFormat
        var entries: [String]
        var problems: [String]

        init(
            _ format: DomainListFormat, _ text: String, _ entries: [String],
            _ problems: [String] = []
        ) {
            (self.format, self.text, self.entries, self.problems) = (
                format, text, entries, problems
            )
        }

        var testDescription: String { "\(format): \(text.debugDescription)" }
    }

    private static let domains = [
        Example(.domains, "a.test\nb.test\n", ["a.test", "b.test"]),
        Example(.domains, "a.test", ["a.test"]),
        Example(.domains, "a.test\r\n\r\n  b.test\t\r\n", ["a.test", "b.test"]),
        Example(.domains, "\u{FEFF}a.test\n\u{FEFF}b.test\n", ["a.test"], ["2 notASCII"]),
        Example(
            .domains, "# c\n! c\n## c\n##c\na.test # c\nb.test ! c\nc.test#c\n",
            ["a.test", "b.test"], ["7 notAName"]),
        Example(.domains, "A.Test.\ntest\n", ["A.Test", "test"]),
        Example(
            .domains, "*.a.test\n.b.test\n*.\n.\n*a.test\n*.*.a.test\n**.a.test\n",
            ["*.a.test", "b.test"],
            ["3 notAName", "4 notAName", "5 notAName", "6 notAName", "7 notAName"]),
        Example(
            .domains, "a_b.test\n-a.test\n1.a.test\na.1\n1\n", ["a_b.test", "-a.test", "1.a.test"],
            ["4 notAName", "5 notAName"]),
        Example(
            .domains, "a..test\n..\na.test..\nhttp://a.test\na.test/x\na.test:80\n", [],
            ["1 notAName", "2 notAName", "3 notAName", "4 notAName", "5 notAName"]),
        Example(
            .domains, "bücher.test\nxn--bcher-kva.test\n*.é.test\na.test é\n",
            ["xn--bcher-kva.test"], ["1 notASCII", "3 notASCII", "4 notASCII"]),
        Example(
            .domains, "a.test b.test\n0.0.0.0 a.test\n||a.test^\naddress=/a.test/\n", [],
            ["1 notAName", "2 notAName", "3 notAName", "4 notAName"]),
        Example(
            .domains, "10.0.0.0/8\n192.0.2.1\n2001:db8::/32\n::1\n[::2]\n::ffff:10.0.0.0/104\n",
            ["10.0.0.0/8", "192.0.2.1/32", "2001:db8::/32", "::1/128", "::2/128", "10.0.0.0/8"]),
        Example(
            .domains, "10.0.0.1/8\n10.0.0.0/33\n10.0.0.0/08\n10.0.0.0/\n10.0.0\n", [],
            ["1 hostBits", "2 notAName", "3 notAName", "4 notAName", "5 notAName"]),
        Example(
            .domains, "*.10.0.0.1\n.10.0.0.1\n10.0.0.1.\n0.0.0.0/0\n::/0\n",
            ["0.0.0.0/0", "::/0"], ["1 notAName", "2 notAName", "3 notAName"]),
        Example(.domains, "a\u{0}.test\na.te st\n", [], ["1 notAName", "2 notAName"]),
    ]

    private static let hosts = [
        Example(
            .hosts, "0.0.0.0 a.test\n127.0.0.1\tb.test c.test\n:: d.test\n::1 e.test\n",
            ["=a.test", "=b.test", "=c.test", "=d.test", "=e.test"]),
        Example(.hosts, "192.0.2.7  A.test. # own\n", ["=A.test"]),
        Example(
            .hosts,
            """
            127.0.0.1 localhost localhost.localdomain local
            255.255.255.255 broadcasthost
            ::1 localhost ip6-localhost ip6-loopback
            fe80::1%lo0 localhost
            ff00::0 ip6-mcastprefix
            ff02::1 ip6-allnodes
            ff02::2 ip6-allrouters
            ff02::3 ip6-allhosts
            fe00::0 ip6-localnet
            ::1 localhost6.localhost localhost6.localdomain6
            0.0.0.0 0.0.0.0
            """, []),
        Example(
            .hosts, "a.test\n0.0.0.0\n0.0.0.0 # a.test\n1.2.3 a.test\n", [],
            ["1 notHosts", "2 notHosts", "3 notHosts", "4 notHosts"]),
        Example(
            .hosts, "0.0.0.0 a.test é.test b.test\n0.0.0.0 192.0.2.1\n0.0.0.0 localhost a..b\n",
            ["=a.test", "=b.test"], ["1 notASCII", "2 notAName", "3 notAName"]),
    ]

    private static let dnsmasq = [
        Example(
            .dnsmasq, "address=/a.test/0.0.0.0\nserver=/b.test/\nlocal=/c.test/\n",
            ["a.test", "b.test", "c.test"]),
        Example(
            .dnsmasq, "address=/a.test/b.test/::\naddress=/.c.test/#\nserver=/d.test/8.8.8.8#53\n",
            ["a.test", "b.test", "c.test", "d.test"]),
        Example(.dnsmasq, "ADDRESS=/A.test./ # c\n", ["A.test"]),
        Example(
            .dnsmasq,
            "server=/a.test/#\nlocal=/a.test/#\naddress=/#/::\naddress=//::\naddress=/a.test\n",
            [], ["1 notDNSMasq", "2 notDNSMasq", "3 notAName", "4 notAName", "5 notDNSMasq"]),
        Example(
            .dnsmasq, "no-resolv\ncache-size=1\na.test\naddress=/a.test/ x\naddress=/\n", [],
            ["1 notDNSMasq", "2 notDNSMasq", "3 notDNSMasq", "4 notDNSMasq", "5 notDNSMasq"]),
        Example(.dnsmasq, "address=/a.test/é.test/::\n", ["a.test"], ["1 notASCII"]),
    ]

    private static let filter = [
        Example(
            .filter, "[Adblock Plus 2.0]\n! c\n# c\n||a.test^\n@@||b.test^\n",
            ["a.test", "!b.test"]),
        Example(
            .filter, "||a.test^$important\n||b.test^$all,important\n@@||c.test^$important\n",
            ["a.test", "b.test", "!c.test"]),
        Example(.filter, "||A.test.^ # c\n||b.test^ ! c\n", ["A.test", "b.test"]),
        Example(
            .filter,
            "||a.test^$third-party\n||a.test^$\n||a.test^$important,popup\n@@||a.test^$document\n",
            [], ["1 modifiers", "2 modifiers", "3 modifiers", "4 modifiers"]),
        Example(
            .filter, "a.test##.ad\n##.ad\n###ad\na.test#@#.ad\n#?#.ad\n", [],
            ["1 notWholeDomain", "2 notWholeDomain", "4 notWholeDomain", "5 notWholeDomain"]),
        Example(
            .filter, "||a.test/ads\n||a.test^ads\n||a.test\n|a.test^\n/ad[0-9]/\n", [],
            (1...5).map { "\($0) notWholeDomain" }),
        Example(
            .filter, "a.test\n@@a.test\n@@|a.test^\n||*.a.test^\n||^\n", [],
            (1...5).map { "\($0) notWholeDomain" }),
        Example(
            .filter, "||192.0.2.1^\n@@||192.0.2.2^\n||[2001:db8::1]^\n||10.0.0.0/8^\n",
            ["192.0.2.1/32", "!192.0.2.2/32", "2001:db8::1/128"], ["4 notWholeDomain"]),
        Example(.filter, "||bücher.test^\n", [], ["1 notWholeDomain"]),
    ]

    @Test(arguments: domains + hosts + dnsmasq + filter)
    func `are read in each format, byte by byte as well`(example: Example) {
        let found = read(example.text, as: example.format)
        #expect(found.entries == example.entries)
        #expect(found.report.problems == Array(example.problems.prefix(5)))
        #expect(found.report.entries == example.entries.count)
        #expect(found.report.format == example.format)
        #expect(found.isSameByteByByte)
    }

    @Test(
        arguments: [
            ("a.test\n0.0.0.0 b.test\n0.0.0.0 c.test\n", .hosts),
            ("# c\n\n127.0.0.1 localhost\n", .hosts),
            ("a.test\n*.b.test\n10.0.0.0/8\n", .domains),
            ("a.test\n||b.test^\n", .filter),
            ("[Adblock Plus 2.0]\na.test\nb.test\nc.test\n", .filter),
            ("no-resolv\nbogus\naddress=/a.test/\nserver=/b.test/\n", .dnsmasq),
            ("no-resolv\naddress=/a.test/\n", .dnsmasq),
            ("##a\n##b\na.test\n", .domains),
            ("a.test##.ad\n", .filter),
            ("# only\n", nil), ("", nil), ("http://a.test/\n", nil),
        ] as [(String, DomainListFormat?)])
    func `tell their format by their first lines`(text: String, format: DomainListFormat?) {
        let found = read(text)
        #expect(found.report.format == format)
        #expect(found.isSameByteByByte)
        // What was held until then is read in this format, with its number.
        let told = read(text, as: format ?? .domains)
        #expect(found.entries == told.entries)
        #expect(found.report.problems == told.report.problems)
    }

    @Test func `keep the format that the first sixteen lines have told`() {
        let names = (1...16).map { "n\($0).test\n" }.joined()
        let found = read(
            "0.0.0.0 a.test\n\(names)\(String(repeating: "0.0.0.0 b.test\n", count: 40))")
        #expect(found.report.format == .domains)
        #expect(found.entries.count == 16 && found.report.meaninglessLines == 41)
        #expect(found.isSameByteByByte)
    }

    @Test func `tell their format also after much that belongs to none`() {
        let junk = String(repeating: "<p>\(String(repeating: "x", count: 100))</p>\n", count: 700)
        let found = read(junk + "0.0.0.0 a.test\n")
        #expect(found.report.format == .hosts && found.entries == ["=a.test"])
        #expect(found.report.meaninglessLines == 700 && found.report.firstMeaningless.count == 5)
        #expect(found.isSameByteByByte)
    }

    @Test func `have lines of limited length`() {
        let longest = DomainListReader.maximumLineBytes
        let hosts = "0.0.0.0 a.test"
        func padded(_ count: Int) -> String {
            hosts + String(repeating: " ", count: count - 14) + "\n"
        }
        #expect(read(padded(longest), as: .hosts).report.problems == [])
        let long = read(
            padded(longest + 1) + "# " + padded(longest)
                + String(repeating: " ", count: longest + 1)
                + "\n" + padded(20), as: .hosts)
        #expect(long.entries == ["=a.test"])
        #expect(long.report.problems == ["1 tooLong", "3 tooLong"])
        #expect(long.report.hasComments)
        #expect(long.isSameByteByByte)
    }

    @Test func `have names of limited length`() {
        let label = String(repeating: "a", count: 63)
        let name = "\(label).\(label).\(label).\(label.dropLast(2))"
        let found = read("\(name)\n\(name).\n\(name)a\n\(label)a.test\n")
        #expect(found.entries == [name, name])
        #expect(found.report.problems == ["3 notAName", "4 notAName"])
    }

    @Test func `are the same in any portions`() {
        let text = Array(
            ((Self.domains + Self.hosts + Self.dnsmasq + Self.filter).map(\.text).joined(
                separator: "\n")).utf8)
        var numbers = Numbers(state: 3)
        for format in DomainListFormat.allCases {
            let whole = read(text, as: format)
            #expect(whole.isSameByteByByte)
            for _ in 0..<20 {
                var sink = Recording()
                var reader = DomainListReader(format)
                var start = 0
                while start < text.count {
                    let end = min(text.count, start + Int.random(in: 1...80, using: &numbers))
                    reader.read(text.span.extracting(start..<end), into: &sink)
                    start = end
                }
                #expect(reader.finish(into: &sink) == whole.report)
                #expect(sink.entries == whole.entries)
            }
        }
    }

    @Test(arguments: DomainListReason.allCases)
    func `have problems that are said in words`(problem: DomainListReason) {
        #expect(problem.text.hasPrefix("is "))
        #expect(DomainListReason.allCases.filter { $0.text == problem.text } == [problem])
    }
}
