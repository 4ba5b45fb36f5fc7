import PinfoldConfiguration
import Testing

@testable import Gateway

@Suite("Environment variables in values")
struct VariableTests {
    // MARK: The notation

    private static func shown(_ text: String) -> String {
        do throws(VariableSyntaxError) {
            guard let parts = try VariableSyntax.parts(of: text) else { return "as it is" }
            return parts.map { part in
                switch part {
                case .text(let text): "'\(text)'"
                case .variable(let name): "<\(name)>"
                }
            }.joined()
        } catch {
            return "malformed"
        }
    }

    @Test(arguments: [
        ("${A}", "<A>"), ("${a_1}", "<a_1>"), ("${_}", "<_>"), ("x${A}y", "'x'<A>'y'"),
        ("${A}${B}", "<A><B>"), ("${A} ${A}", "<A>' '<A>"), ("ä${A}ö", "'ä'<A>'ö'"),
        // A name, nothing else.
        ("${}", "malformed"), ("${1}", "malformed"), ("${A", "malformed"), ("${A:-b}", "malformed"),
        ("${A }", "malformed"), ("${ A}", "malformed"), ("${Ä}", "malformed"),
        ("${env:A}", "malformed"), ("x${${A}}", "malformed"), ("${A-B}", "malformed"),
        ("${\(String(repeating: "A", count: 129))}", "malformed"),
        // What is no variable.
        ("", "as it is"), ("$", "as it is"), ("$A", "as it is"), ("$1", "as it is"),
        ("^a$", "as it is"), ("{A}", "as it is"), ("$ {A}", "as it is"), ("$$", "as it is"),
        ("$(A)", "as it is"), ("a$$b", "as it is"), ("{$}", "as it is"),
        // The characters themselves.
        ("$${A}", "'${A}'"), ("$${", "'${'"), ("$$${A}", "'$'<A>"), ("$$$${A}", "'$${A}'"),
        ("$${A}${A}", "'${A}'<A>"), ("$${A}$${B}", "'${A}${B}'"), ("$A${A}", "'$A'<A>"),
        ("$$ ${A}", "'$$ '<A>"), ("${A}$", "<A>'$'"), ("${A}}", "<A>'}'"),
    ])
    func `are names within braces`(text: String, expected: String) {
        #expect(Self.shown(text) == expected)
    }

    @Test(arguments: [
        "", "a", "$", "$$", "${", "${A}", "$${A}", "$$${A}", "$$$$${", "a$b{c", "$ {", "{${",
        "ä$${",
    ])
    func `leave a text that is escaped as it is`(text: String) throws {
        let parts = try VariableSyntax.parts(of: VariableSyntax.escaped(text))
        #expect((parts ?? [.text(text)]) == (text.isEmpty ? parts ?? [.text("")] : [.text(text)]))
        #expect(parts == nil || text.contains("${"))
    }

    // MARK: Values

    @Test func `are numbers, sizes, durations, booleans and words without quotes or with them`()
        throws
    {
        for text in [
            """
            workers: ${N}
            cache:
              enabled: ${ON}
              memory: ${SIZE}
              path: ${FOLDER}/cache
            timeouts:
              head: ${SECONDS}s
            log:
              level: ${LEVEL}
            """,
            """
            workers: "${N}"
            cache: { enabled: "${ON}", memory: '${SIZE}', path: "${FOLDER}/cache" }
            timeouts: { head: "${SECONDS}s" }
            log: { level: "${LEVEL}" }
            """,
        ] {
            let snapshot = try load(
                text,
                environment: environment(with: [
                    "N": "3", "ON": "false", "SIZE": "2MiB", "SECONDS": "7", "LEVEL": "debug",
                    "FOLDER": "/var/x",
                ]))
            #expect(snapshot.workers == .fixed(3))
            #expect(!snapshot.cache.isEnabled)
            #expect(snapshot.cache.memoryBytes == 2 << 20)
            #expect(snapshot.cache.path == "/var/x/cache")
            #expect(snapshot.timeouts.headMilliseconds == 7000)
            #expect(snapshot.log.level == .debug)
        }
    }

    /// Each would be something else if the value were put in before the file is parsed.
    @Test(arguments: [
        "a: b", "a\nb: c", "[a]", "{a: b}", "- a", "# a", "a # b", "*a", "&a b", "!!int a", "'",
        "\"",
        "~", "null", "", " a ", "${B}", "$${B}", "%", "@", "`", "|", ">", "true", "1", "ä", "\\n",
    ])
    func `never change the structure`(value: String) throws {
        let text = "a: ${A}\nb: '${A}'\nc: [\"x${A}y\"]\n${A}: d\n"
        var expansion = VariableExpansion(.fixed(["A": value]))
        let node = expansion.expand(
            try YAMLDocument.parse(Array(text.utf8), name: "f"), path: "")
        #expect(expansion.errors.isEmpty)
        guard case .mapping(let entries) = node.content,
            case .sequence(let list) = entries[2].value.content
        else { return #expect(Bool(false), "\(node)") }
        #expect(entries.map(\.key) == ["a", "b", "c", "${A}"])
        func scalar(_ node: ConfigNode) -> String? {
            if case .scalar(let text, _) = node.content { text } else { nil }
        }
        #expect(scalar(entries[0].value) == value)
        #expect(scalar(entries[1].value) == value)
        #expect(list.map(scalar) == ["x\(value)y"])
    }

    @Test func `are put into what aliases repeat, but not into keys`() throws {
        let snapshot = try load(
            "hosts: [{ match: [&h '${H}'], name: *h }, { match: ['*.${H}'] }]\n",
            environment: environment(with: ["H": "a.example"]))
        #expect(snapshot.hosts.entries.map(\.label) == ["a.example", "*.a.example"])
        #expect(
            errors(of: "${K}: 1", environment: environment(with: ["K": "workers"])) == [
                "gateway.yaml:1: \"${K}\": unknown key; expected one of "
                    + SectionName.allCases.map(\.rawValue).joined(separator: ", ")
            ])
    }

    @Test func `are not put into options`() {
        var overlay = CommandLineOverlay()
        overlay.workers = "${N}"
        #expect(
            errors(of: "{}", overlay: overlay, environment: environment(with: ["N": "3"])) == [
                "--workers: \"${N}\" is not a number of threads; expected auto, or a whole number "
                    + "from 1 to 256"
            ])
    }

    @Test func `that are unset, malformed, not UTF-8 or too long are errors with their place`() {
        #expect(
            errors(
                of: "workers: ${NONE}\ncache:\n  path: a\n  memory: ${X:-1}\nhosts:\n"
                    + "  - match: [a, '${NO}', 'b']\n",
                environment: environment(with: [:])) == [
                    "gateway.yaml:1: workers: the environment variable \"NONE\" is not set; "
                        + "expected a variable in the gateway's environment, or $${ for the "
                        + "characters ${",
                    "gateway.yaml:4: cache.memory: `${` begins no variable; expected ${NAME} for "
                        + "an environment variable, or $${ for the characters ${",
                    "gateway.yaml:6: hosts[0].match[1]: the environment variable \"NO\" is not "
                        + "set; expected a variable in the gateway's environment, or $${ for the "
                        + "characters ${",
                ])
        let long = String(repeating: "x", count: VariableExpansion.maximumBytes / 2)
        #expect(
            errors(
                of: "a: ['${L}', '${L}', '${L}']", environment: environment(with: ["L": long])) == [
                    "gateway.yaml:1: a[2]: the values of variables are too long; expected at most "
                        + "1MiB in all"
                ])
    }

    @Test func `within braces and brackets need quotes, as the error says`() {
        for text in ["cache: { enabled: ${A} }", "access: { clients: [${A}] }"] {
            let found = errors(of: text, environment: environment(with: ["A": "1"]))
            #expect(found.count == 1)
            #expect(
                found.first?.hasSuffix("expected `${NAME}` in quotes within braces and brackets")
                    ?? false, "\(found)")
        }
    }

    @Test func `may be empty, which is not the default`() {
        #expect(
            errors(of: "workers: ${A}\nhosts: ${A}\n", environment: environment(with: ["A": ""]))
                == [
                    "gateway.yaml:1: workers: \"${A}\" is not a number of threads; expected auto, "
                        + "or a whole number from 1 to 256",
                    "gateway.yaml:2: hosts: is a single value (written \"${A}\"); expected a list "
                        + "of entries with match",
                ])
    }

    // MARK: Messages

    @Test(arguments: [
        // Whole values, parts of values, values within others, long ones and short ones.
        ("workers: ${S}", "xyz"), ("cache: { path: a, memory: '${S}' }", "hunter2-hunter2"),
        ("cache: { path: a, memory: '${S}' }", "64M"), ("timeouts: { head: '${S}' }", "900h"),
        ("listeners: [{ address: '${S}:80' }]", "secret-host.example"),
        (
            "listeners: [{ address: '127.0.0.1:0', kind: reverse, upstream: '${S}' }]",
            "gopher://secret@a.example/"
        ),
        ("admin: { tokenFile: '/none/${S}' }", "secret-file"),
        ("hosts: [{ match: ['${S}'] }]", "secret..host"),
        (
            "hosts: [{ match: ['a'], request: { headers: { set: { A: '${S}' } } } }]",
            "se\"cr\u{1}et!"
        ),
        ("hosts: [{ match: ['a'], response: { statusCodes: ['${S}'] } }]", "200-secret"),
        ("access: { clients: ['${S}'] }", "198.51.100.0/secret"),
        ("pinsets: { a: { mode: publicKey, pins: ['sha256/${S}'] } }", "c2VjcmV0c2VjcmV0"),
        ("log: { level: '${S}' }", String(repeating: "secret", count: 60)),
        ("limits: { fields: '${S}' }", "00000000000123456789"),
        ("cache: { path: a, enabled: '${S}' }", "True?"),
        ("hosts: [{ match: ['a'], cache: { key: ['${S}'] } }]", "secret key"),
        ("resolver: { servers: ['${S}'] }", "198.51.100.secret"),
    ])
    func `are not shown in errors`(text: String, value: String) {
        let found = errors(of: text, environment: environment(with: ["S": value]))
        #expect(!found.isEmpty)
        for line in found {
            #expect(!line.contains(value), "\(line)")
            #expect(!line.contains(value.prefix(8)), "\(line)")
            #expect(line.contains("${S}"), "\(line)")
        }
    }

    @Test func `are not shown in errors about other keys and in warnings`() throws {
        let secret = "secret-name.example"
        let both = errors(
            of: "listeners: [{ name: a, address: '${A}' }, { name: b, address: '${A}' }]\n",
            environment: environment(with: ["A": "127.0.0.1:8123"]))
        #expect(both.count == 1)
        #expect(!both.joined().contains("127.0.0.1:8123"), "\(both)")
        let loaded = try ConfigurationLoader(environment: environment(with: ["A": secret])).load(
            text: Array("hosts: [{ match: ['${A}'] }, { match: ['${A}'] }]\n".utf8), name: "f.yaml")
        #expect(loaded.warnings.count == 1)
        #expect(!loaded.warnings.map(\.description).joined().contains(secret))
        #expect(loaded.warnings.map(\.description).joined().contains("${A}"))
    }

    // MARK: Printing

    @Test func `are printed where they are written, and where a name comes from one`() throws {
        let variables = [
            "HOST": "api.internal.example", "N": "7", "SECONDS": "90", "SUB": "certs",
            "DIR": "/run/credentials", "KEY": "s3cret-s3cret", "ON": "true", "A": "a",
        ]
        let text = """
            workers: ${N}
            listeners: [{ address: "127.0.0.1:808${N}" }]
            hosts:
              - match: ["${HOST}", "b", "${A}"]
                request:
                  headers: { set: { X-Key: "Bearer ${KEY}", X-A: "$${A}", X-B: "${A}b" } }
                timeouts: { connect: "${SECONDS}s" }
            cache: { path: "${SUB}/x", enabled: "${ON}" }
            log: { access: { path: "${DIR}/access.log" } }
            access: { destinations: { allow: ["${A}.example", 10.0.0.0/8] } }
            """
        let environment = environment(with: variables)
        let snapshot = try load(text, environment: environment)
        #expect(snapshot.hosts.entries[0].label == "api.internal.example")
        let yaml = snapshot.effectiveYAML()
        for line in [
            #"workers: "${N}""#, #"    address: "127.0.0.1:808${N}""#,
            #"match: ["${HOST}", "b", "${A}"]"#, #"connect: "${SECONDS}s""#,
            #"path: "/srv/${SUB}/x""#, #"path: "${DIR}/access.log""#, #"enabled: "${ON}""#,
            #""Bearer ${KEY}""#, #""$${A}""#, #""${A}b""#,
            #"allow: ["${A}.example", "10.0.0.0/8"]"#,
        ] {
            #expect(yaml.contains(line), "\(line) in\n\(yaml)")
        }
        for value in ["api.internal", "s3cret", "8087", "credentials"] {
            #expect(!yaml.contains(value), "\(value) in\n\(yaml)")
        }
        #expect(try load(yaml, folder: "/elsewhere", environment: environment) == snapshot)
    }

    /// Every scalar of a complete configuration, one after the other, comes from a variable.
    @Test func `may stand for every value that is no key, and are printed in its place`() throws {
        try withFullConfiguration { folder in
            let plain = try load(fullConfiguration, folder: folder)
            let document = try YAMLDocument.parse(Array(fullConfiguration.utf8), name: "f")
            var count = 0
            for path in document.scalarPaths {
                let (text, value) = document.written(replacing: path, with: "${THE_VARIABLE}")
                let environment = environment(with: ["THE_VARIABLE": value])
                let snapshot = try load(text, folder: folder, environment: environment)
                #expect(snapshot == plain, "\(path)")
                let yaml = snapshot.effectiveYAML()
                #expect(yaml.contains("${THE_VARIABLE}"), "\(path) = \(value) in\n\(yaml)")
                let again = try load(yaml, folder: "/elsewhere", environment: environment)
                #expect(again == plain, "\(path)")
                count += 1
            }
            #expect(count > 100)
        }
    }

    @Test func `are not needed for what is printed without them`() throws {
        let text = "hosts: [{ match: [a], request: { headers: { set: { A: 'x$${Y} $1' } } } }]"
        let snapshot = try load(text)
        #expect(snapshot.effectiveYAML().contains("\"x$${Y} $1\""))
        #expect(try load(snapshot.effectiveYAML()) == snapshot)
    }
}

extension ConfigNode {
    /// The places of all scalars: the numbers of the elements on the way to each.
    fileprivate var scalarPaths: [[Int]] {
        switch content {
        case .null: []
        case .scalar: [[]]
        case .sequence(let values):
            values.enumerated().flatMap { index, value in value.scalarPaths.map { [index] + $0 } }
        case .mapping(let entries):
            entries.enumerated().flatMap { index, entry in
                entry.value.scalarPaths.map { [index] + $0 }
            }
        }
    }

    /// The node as YAML with another scalar at a place, and the one that was there.
    fileprivate func written(replacing path: [Int], with text: String) -> (String, String) {
        var old = ""
        let yaml = written(path[...]) { scalar in
            old = scalar
            return text
        }
        return (yaml, old)
    }

    private func written(_ path: ArraySlice<Int>?, _ replace: (String) -> String) -> String {
        func rest(_ index: Int) -> ArraySlice<Int>? {
            path?.first == index ? path?.dropFirst() : nil
        }
        switch content {
        case .null: return "~"
        case .scalar(let text, let isPlain):
            if let path, path.isEmpty { return YAMLText.quoted(replace(text)) }
            return isPlain && ["true", "false"].contains(text) ? text : YAMLText.quoted(text)
        case .sequence(let values):
            return "["
                + values.enumerated().map { $1.written(rest($0), replace) }
                .joined(separator: ", ") + "]"
        case .mapping(let entries):
            return "{"
                + entries.enumerated().map { index, entry in
                    "? \(YAMLText.quoted(entry.key)) : \(entry.value.written(rest(index), replace))"
                }.joined(separator: ", ") + "}"
        }
    }
}
