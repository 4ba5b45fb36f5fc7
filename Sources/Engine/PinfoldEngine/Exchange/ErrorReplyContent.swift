import HTTPCore
import PinfoldConfiguration

/// What a reply says that explains why the gateway did not serve a request: the same in each of its
/// formats.
struct ErrorReplyContent {
    let status: UInt16
    /// The reason's token.
    let reason: String
    /// One sentence: what was wrong, and what was expected where that helps.
    let message: String
    /// The part of invalid content that is quoted; `nil` if there is none.
    var excerpt: String?
    /// `host:port` of the server, and its addresses; `nil` if that is not known, or not shown.
    var server: String?
    var tried: String?
    /// Identifies the exchange in the log.
    let id: String
    /// The host, and the port if there is one, as the client named it; `nil` if it is not known.
    var host: String?
    /// When the reply is written, in seconds since 1970; `nil` to leave it out.
    var seconds: Int64?

    /// The time: RFC 3339, UTC.
    var time: String? { seconds.map { CivilDate.text(secondsSince1970: $0) } }

    /// The words of the status; its class if it is not registered.
    var phrase: String {
        let phrase = "\(StatusPhrase.of(status))"
        return phrase.isEmpty ? (status < 500 ? "Refused" : "Failed") : phrase
    }

    /// A member that not every reply has.
    private struct Detail {
        let name: String
        let value: String?

        init(_ name: String, _ value: String?) {
            self.name = name
            self.value = value
        }
    }

    /// What is known of the failure.
    private var details: [Detail] {
        [Detail("excerpt", excerpt), Detail("server", server), Detail("tried", tried)]
    }

    /// What the request was.
    private var circumstances: [Detail] { [Detail("host", host), Detail("time", time)] }

    /// The content of the reply.
    func written(in format: ReplyFormat) -> [UInt8] {
        switch format {
        case .text: Array(text.utf8)
        case .json: Array(json.utf8)
        case .problem: Array(problem.utf8)
        case .html: html
        case .propertyList, .xml: Array(propertyList.utf8)
        }
    }

    // MARK: Text

    private var text: String {
        var lines = excerpt.map { "content: \($0)\n" } ?? ""
        if let server { lines += "server: \(server)\n" }
        if let tried { lines += "tried: \(tried)\n" }
        return """
            \(status) \(reason)
            \(message)
            \(lines)id: \(id)

            """
    }

    // MARK: JSON

    private var json: String {
        """
        {"status":\(status),"reason":\(JSONText.quoted(reason)),\
        "message":\(JSONText.quoted(message))\(Self.members(details)),"id":\(JSONText.quoted(id))\
        \(Self.members(circumstances))}

        """
    }

    /// RFC 9457: of no type but that of its status, which its title says; our members extend it.
    private var problem: String {
        """
        {"type":"about:blank","title":\(JSONText.quoted(phrase)),"status":\(status),\
        "detail":\(JSONText.quoted(message)),"reason":\(JSONText.quoted(reason))\
        \(Self.members(details)),"id":\(JSONText.quoted(id))\
        \(Self.members(circumstances))}

        """
    }

    private static func members(_ details: [Detail]) -> String {
        details.map { detail in
            detail.value.map { ",\(JSONText.quoted(detail.name)):\(JSONText.quoted($0))" } ?? ""
        }.joined()
    }

    // MARK: A property list

    private var propertyList: String {
        func entry(_ key: String, _ type: String, _ value: String?) -> String {
            value.map { "\t<key>\(key)</key>\n\t<\(type)>\(Self.xml($0))</\(type)>\n" } ?? ""
        }
        let texts =
            [Detail("reason", reason), Detail("message", message)] + details
            + [Detail("id", id), Detail("host", host)]
        let entries = texts.map { entry($0.name, "string", $0.value) }.joined()
        return """
            <?xml version="1.0" encoding="UTF-8"?>
            <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" \
            "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
            <plist version="1.0">
            <dict>
            \(entry("status", "integer", "\(status)"))\(entries)\(entry("time", "date", time))\
            </dict>
            </plist>

            """
    }

    /// Text in XML, where what XML does not allow is replaced.
    private static func xml(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\t", "\n": result.unicodeScalars.append(scalar)
            case "\u{0}"..."\u{1F}", "\u{FFFE}", "\u{FFFF}": result += "\u{FFFD}"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    // MARK: HTML

    /// The gateway's own page.
    private var html: [UInt8] {
        var page = Array("<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n".utf8)
        page += "<meta name=\"viewport\" content=\"width=device-width\">\n<title>".utf8
        HTMLText.append("\(status) \(phrase)", to: &page)
        page += "</title>\n<style>\n\(Self.style)</style>\n<h1>".utf8
        HTMLText.append("\(status) \(phrase)", to: &page)
        page += "</h1>\n<p>".utf8
        HTMLText.append(message, to: &page)
        page += "</p>\n<dl>\n".utf8
        let rows = [Detail("reason", reason)] + details + circumstances + [Detail("id", id)]
        for row in rows {
            guard let value = row.value else { continue }
            page += "<dt>\(row.name == "excerpt" ? "content" : row.name)</dt><dd>".utf8
            HTMLText.append(value, to: &page)
            page += "</dd>\n".utf8
        }
        return page + "</dl>\n</html>\n".utf8
    }

    private static let style = """
        :root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif }
        body { max-width: 44rem; margin: 12vh auto; padding: 0 1.5rem }
        h1 { font-size: 1.5rem; line-height: 1.25 }
        dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1rem; opacity: .8 }
        dd { margin: 0; overflow-wrap: anywhere; font-family: ui-monospace, monospace }

        """
}

extension ErrorReplyContent {
    /// The values of an operator's page. What only the exchange knows is `url` and `client`.
    func value(_ value: ErrorPageValue, url: () -> String, client: () -> String) -> String {
        switch value {
        case .status: "\(status)"
        case .phrase: phrase
        case .reason: reason
        case .message: message
        case .host: host ?? ""
        case .url: url()
        case .client: client()
        case .id: id
        case .time: time ?? ""
        }
    }
}
