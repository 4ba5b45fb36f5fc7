import CachePolicy

/// The vocabulary as text: the documentation's page, and what `pinfold reasons` prints.
package enum ReasonsPage {
    /// The whole page in Markdown, as it is checked in.
    package static var markdown: String {
        var page = """
            # Reasons

            Every token by which the gateway says why: what it means, and what to do about it.

            ## Overview

            A request that the gateway does not serve, or does not serve to its end, has one reason.
            Its token is the same in the reply's body (`reason`), in the `details` of
            `Proxy-Status`, in the access log (`reason`), in the operational log (`reason`) and as
            the label `reason` of `pinfold_http_request_failures_total`. The exchange's `id` stands
            beside it in all but the metric. `pinfold reasons TOKEN` prints one of these lines.

            *This page is written by `pinfold reasons --markdown`; do not edit it by hand.*


            """
        for section in ReasonSection.allCases {
            page += "## \(section.rawValue)\n\n"
            page += "| token | status | `error` of Proxy-Status | meaning | what to do |\n"
            page += "|---|---|---|---|---|\n"
            for entry in entries(of: section) {
                page += "| `\(entry.token)` | \(entry.status) | `\(entry.errorType.rawValue)` "
                page += "| \(entry.meaning) | \(entry.remedy) |\n"
            }
            page += "\n"
        }
        for (title, text, entries) in otherLists {
            page += "## \(title)\n\n\(text)\n\n| token | meaning | what to do |\n|---|---|---|\n"
            for entry in entries {
                page += "| `\(entry.token)` | \(entry.meaning) | \(entry.remedy) |\n"
            }
            page += "\n"
        }
        return String(page.dropLast())
    }

    private static func entries(of section: ReasonSection) -> [ReasonEntry] {
        Reason.allCases.map(\.entry).filter { $0.section == section }
    }

    private static var otherLists: [(title: String, text: String, [CacheReasonEntry])] {
        [
            (
                "Why the server was asked",
                "`forwarded` in the access log; `fwd` and `detail` in `Cache-Status`.",
                ForwardReason.allCases.map(\.entry)
            ),
            (
                "Why a response was not stored",
                "`not_stored` in the access log; `detail` in `Cache-Status`.",
                NotStoredReason.allCases.map(\.entry)
            ),
            (
                "Why a stale response was served", "`detail` in `Cache-Status`.",
                StaleUse.allCases.map(\.entry)
            ),
            (
                "Verdicts of pinfold trust",
                "`reason` in the answers of `pinfold trust` that are no refusal: those have one of "
                    + "the reasons above.",
                VerdictReason.allCases.map(\.entry)
            ),
        ]
    }

    /// All tokens with their meaning, a line each.
    package static var list: String {
        var text = ""
        for section in ReasonSection.allCases {
            text += "\(section.rawValue):\n"
            for entry in entries(of: section) { text += line(entry.token, entry.meaning) }
        }
        for (title, _, entries) in otherLists {
            text += "\(title):\n"
            for entry in entries { text += line(entry.token, entry.meaning) }
        }
        return text
    }

    private static func line(_ token: String, _ meaning: String) -> String {
        let width = 38
        let gap = String(repeating: " ", count: max(1, width - token.utf8.count))
        return "  \(token)\(gap)\(meaning)\n"
    }

    /// All that is known of one token, which may be a reason and the cache's word for something
    /// else; nil if there is no such token.
    package static func explanation(of token: String) -> String? {
        var parts: [String] = []
        for entry in Reason.allCases.map(\.entry) where entry.token == token {
            parts.append(
                """
                \(entry.token): status \(entry.status), \(entry.errorType.rawValue)
                  \(entry.meaning)
                  what to do: \(entry.remedy)

                """)
        }
        for (title, _, entries) in otherLists {
            for entry in entries where entry.token == token {
                parts.append("\(entry.token): \(title.lowercased())\n  \(entry.meaning)\n")
                if !entry.remedy.isEmpty { parts.append("  what to do: \(entry.remedy)\n") }
            }
        }
        return parts.isEmpty ? nil : parts.joined()
    }
}
