// Reads a JSON message in one pass with RapidJSON: keeps its type, and writes its payload as JSON again.
//
// It builds no document and does not recurse, so even a deeply nested message costs no stack. This file must not use
// connections.
#ifndef ENVELOPE_H
#define ENVELOPE_H

#include <string>
#include <string_view>

#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

class Envelope {
public:
    using Ch = char;

    // Returns false if the text is not a JSON object.
    bool parse(std::string_view text)
    {
        depth_ = 0;
        field_ = Field::other;
        type_.clear();
        begin_payload();
        payload_.Null();

        constexpr unsigned FLAGS = rapidjson::kParseIterativeFlag | rapidjson::kParseFullPrecisionFlag;
        rapidjson::MemoryStream stream(text.data(), text.size());
        rapidjson::Reader reader;
        return reader.Parse<FLAGS>(stream, *this) && payload_.IsComplete();
    }

    std::string_view type() const { return type_; }
    // The payload as JSON; `null` if the message had none.
    std::string_view payload() const { return {buffer_.GetString(), buffer_.GetSize()}; }

    // The handler of RapidJSON's SAX reader.
    bool Null() { return value([](auto &to) { return to.Null(); }); }
    bool Bool(bool it) { return value([it](auto &to) { return to.Bool(it); }); }
    bool Int(int it) { return value([it](auto &to) { return to.Int(it); }); }
    bool Uint(unsigned it) { return value([it](auto &to) { return to.Uint(it); }); }
    bool Int64(int64_t it) { return value([it](auto &to) { return to.Int64(it); }); }
    bool Uint64(uint64_t it) { return value([it](auto &to) { return to.Uint64(it); }); }
    bool Double(double it) { return value([it](auto &to) { return to.Double(it); }); }
    bool RawNumber(const Ch *, rapidjson::SizeType, bool) { return false; }

    bool String(const Ch *text, rapidjson::SizeType length, bool)
    {
        if (depth_ == 1 && field_ == Field::type)
            type_.assign(text, length);
        return value([=](auto &to) { return to.String(text, length); });
    }

    bool Key(const Ch *text, rapidjson::SizeType length, bool)
    {
        if (depth_ > 1)
            return field_ != Field::payload || payload_.Key(text, length);
        const std::string_view name(text, length);
        field_ = name == "type" ? Field::type : name == "payload" ? Field::payload : Field::other;
        if (field_ == Field::payload)
            begin_payload();
        return true;
    }

    bool StartObject()
    {
        if (depth_++ == 0)
            return true;
        return field_ != Field::payload || payload_.StartObject();
    }

    bool EndObject(rapidjson::SizeType members)
    {
        if (--depth_ == 0)
            return true;
        return field_ != Field::payload || payload_.EndObject(members);
    }

    bool StartArray()
    {
        return value([](auto &to) { return to.StartArray(); }) && ++depth_;
    }

    bool EndArray(rapidjson::SizeType elements)
    {
        --depth_;
        return field_ != Field::payload || payload_.EndArray(elements);
    }

private:
    enum class Field { type, payload, other };

    void begin_payload()
    {
        buffer_.Clear();
        payload_.Reset(buffer_);
    }

    // Returns false at the top level, where only an object is allowed.
    template <typename Write> bool value(Write write)
    {
        return depth_ > 0 && (field_ != Field::payload || write(payload_));
    }

    int depth_ = 0;
    Field field_ = Field::other;
    std::string type_;
    rapidjson::StringBuffer buffer_;
    rapidjson::Writer<rapidjson::StringBuffer> payload_{buffer_};
};

#endif
