import HTTPCore
import PinfoldTLS
import Trust

/// The configuration in force, and what its files say by now.
struct ConfigurationReport: Sendable {
    /// The configuration in force as text.
    struct Text: Sendable {
        /// YAML with every default; `***` in place of what may be a secret.
        var yaml: String
        /// Whether there is more.
        var isCut: Bool
        /// The SHA-256 of the whole text, in hexadecimal.
        var fingerprint: String

        /// - Parameters:
        ///   - yaml: the whole text.
        ///   - most: so many bytes of it are kept, without the line that does not fit.
        init(_ yaml: String, most: Int) {
            let bytes = Array(yaml.utf8)
            fingerprint =
                SHA256Digest(hashing: bytes.span)?.bytes
                .map { String(hexadecimal: $0, digits: 2) }.joined() ?? ""
            isCut = bytes.count > most
            guard isCut else {
                self.yaml = yaml
                return
            }
            let kept = bytes.prefix(most)
            let end = kept.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
            self.yaml = String(decoding: kept[..<end], as: UTF8.self)
        }
    }

    /// What the files say.
    struct Files: Sendable {
        enum Result: Sendable {
            /// They mean what is in force.
            case unchanged
            /// They are valid, and these sections differ.
            case changed(sections: [String], warnings: [ConfigurationFinding])
            /// A reload would be refused.
            case refused([ConfigurationFinding])
            /// The file cannot be read; why.
            case unreadable(String)

            static let words = ["unchanged", "changed", "refused", "unreadable"]

            var word: String {
                switch self {
                case .unchanged: "unchanged"
                case .changed: "changed"
                case .refused: "refused"
                case .unreadable: "unreadable"
                }
            }
        }

        /// The absolute path of the file that includes the others, if there are any.
        var path: String
        /// When they were looked at, in milliseconds since 1970.
        var looked: Int64
        var result: Result
    }

    /// Whether who asks may see the text.
    var isFull: Bool
    var status: StatusReport
    /// The last reload that was refused; `nil` if there was none.
    var lastRefused: StatusReport.Reload?
    var text: Text
    /// `nil` for the built-in defaults.
    var files: Files?
}

extension ConfigurationReport {
    /// The same for somebody who may not see the text: what errors and warnings quote of it is
    /// `***`.
    func withoutQuotes() -> ConfigurationReport {
        var masked = self
        masked.status.configuration.warnings.hideQuoted()
        masked.status.lastReload?.errors.hideQuoted()
        masked.lastRefused?.errors.hideQuoted()
        masked.status.policy?.hidesQuotes = true
        switch masked.files?.result {
        case .changed(let sections, var warnings):
            warnings.hideQuoted()
            masked.files?.result = .changed(sections: sections, warnings: warnings)
        case .refused(var errors):
            errors.hideQuoted()
            masked.files?.result = .refused(errors)
        case .unchanged, .unreadable, nil: break
        }
        return masked
    }

    private static let files = ObjectShape<Files>(
        "What the configuration's files say by now; absent for the built-in defaults.",
        [
            .text("path", "The configuration file.") { $0.path },
            .time("looked", "When they were looked at: at most two seconds before.") { $0.looked },
            .word(
                "state", Files.Result.words,
                "unchanged: they mean what is in force. changed: a reload would put them in "
                    + "force. refused: a reload would be refused. unreadable: the file cannot be "
                    + "read."
            ) { $0.result.word },
            .texts("changed", "The sections that differ.") {
                if case .changed(let sections, _) = $0.result { sections } else { [] }
            },
            .list("warnings", ConfigurationFinding.shape, "The warnings about them.") {
                if case .changed(_, let warnings) = $0.result { warnings } else { [] }
            },
            .list("errors", ConfigurationFinding.shape, "Why a reload would be refused.") {
                if case .refused(let errors) = $0.result { errors } else { [] }
            },
            .optionalText("problem", "Why the file cannot be read.") {
                if case .unreadable(let problem) = $0.result { problem } else { nil }
            },
        ])

    private static let refusal = ObjectShape<StatusReport.Reload>(
        "The last reload that was refused; absent if there was none.",
        [
            .time("time", "When it ended.") { $0.time },
            .list("errors", ConfigurationFinding.shape, "Why it was refused.") { $0.errors },
        ])

    static let shape = ObjectShape<ConfigurationReport>(
        "The configuration in force, and what its files say by now.",
        [
            .access { $0.isFull },
            .number("generation", "Its number: each reload adds one.") {
                $0.status.configuration.generation
            },
            .time("loaded", "When it was loaded.") { $0.status.configuration.loaded },
            .text(
                "fingerprint",
                "SHA-256 of the whole text, as it is shown: where it is the same, so is the "
                    + "configuration, except for secrets."
            ) { $0.text.fingerprint },
            .optionalText(
                "text",
                "YAML with every default, as pinfold check prints it; *** in place of values that "
                    + "rules write, of userinfo in URLs, and of queries. Only with the token, a "
                    + "certificate, or by a Unix socket."
            ) { $0.isFull ? $0.text.yaml : nil },
            .flag("textIsCut", "Whether the text has more bytes than are shown.") {
                $0.text.isCut
            },
            .list("warnings", ConfigurationFinding.shape, "The warnings about it.") {
                $0.status.configuration.warnings
            },
            .texts("needRestart", "Sections of it that are not in force before a restart.") {
                $0.status.configuration.needRestart
            },
            .optionalObject("files", files) { $0.files },
            .optionalObject("policy", PolicyReport.shape) { $0.status.policy },
            .optionalObject("lastReload", StatusReport.reload) { $0.status.lastReload },
            .optionalObject("lastRefused", refusal) { $0.lastRefused },
        ])
}

extension [ConfigurationFinding] {
    /// Puts `***` in place of values that are quoted: they may be secrets.
    fileprivate mutating func hideQuoted() {
        for index in indices {
            self[index].problem = Self.hidingQuoted(self[index].problem)
            self[index].text = Self.hidingQuoted(self[index].text)
        }
    }

    /// Quotes within quoted values are written as `\"`.
    static func hidingQuoted(_ text: String) -> String {
        var shown = ""
        var (isQuoted, isEscaped) = (false, false)
        for character in text {
            if isQuoted, isEscaped {
                isEscaped = false
            } else if character == "\"" {
                shown += isQuoted ? "***\"" : "\""
                isQuoted.toggle()
            } else if !isQuoted {
                shown.append(character)
            } else {
                isEscaped = character == "\\"
            }
        }
        return isQuoted ? shown + "***" : shown
    }
}

/// What the resource of the configuration is made of.
struct ConfigurationSource: Sendable {
    /// Called on a thread of `work`; may take seconds.
    var report: @Sendable (_ isFull: Bool) -> ConfigurationReport
    var work: AdminWork
}

extension AdminResource {
    /// `GET /api/v1/configuration`
    /// - Parameter source: `nil` if there is none to show; the resource then says so.
    static func configuration(_ source: ConfigurationSource?) -> AdminResource {
        AdminResource(
            method: .get, path: "/api/v1/configuration", caller: .operator, name: "configuration",
            summary: "the configuration in force, and what its files say by now",
            responses: [
                Response(
                    status: 200, description: "A report.",
                    schema: ConfigurationReport.shape.schema),
                Response(
                    status: 503, description: "Too many others are waiting.",
                    schema: AdminError.shape.schema),
            ],
            answer: { request in
                guard let source else {
                    return .problem(
                        404, "no-configuration", "No configuration",
                        "this gateway shows no configuration")
                }
                if let refusal = refusal(ofQueryOf: request) { return refusal }
                let isFull = request.access.isProven(request.authorization)
                return .worked(by: source.work) {
                    let report = source.report(isFull)
                    return .json(
                        isFull ? report : report.withoutQuotes(), as: ConfigurationReport.shape)
                }
            })
    }
}
