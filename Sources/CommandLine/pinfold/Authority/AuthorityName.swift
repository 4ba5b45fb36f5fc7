import CLinux
import HTTPCore

extension AuthorityOptions {
    /// A common name that people can distinguish: a random number, the machine's name and the day.
    static func defaultName(now: Int64) -> String {
        let number = String(UInt16.random(in: 0x1000...0xFFFF), radix: 16)
        let day = CivilDate.text(secondsSince1970: now).prefix(10)
        return "Pinfold CA \(number) \(hostName()) \(day)"
    }

    /// The machine's name, truncated to fit.
    private static func hostName() -> String {
        var bytes = [CChar](repeating: 0, count: 256)
        guard gethostname(&bytes, bytes.count - 1) == 0 else { return "unknown" }
        let name = bytes.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
        let isPlain = name.allSatisfy { 0x21...0x7E ~= $0 }
        return isPlain && !name.isEmpty ? String(decoding: name.prefix(32), as: UTF8.self) : "host"
    }
}
