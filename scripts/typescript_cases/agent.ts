// The agent of the cases in cases.py: tools of several kinds, and rules in place of a model.
import { BaseLlm, createTool, LlmAgent, type LlmRequest, LlmResponse } from "@iqai/adk";
import { z } from "zod";

const WEATHER: Record<string, string> = {
  London: "sunny, 22°C", Tokyo: "cloudy, 18°C", Paris: "rainy, 15°C", "New York": "windy, 9°C", 北京: "晴",
};

const tools = [
  createTool({
    name: "get_weather",
    description: "The weather in a city.",
    schema: z.object({ city: z.string(), days: z.number().optional(), options: z.any().optional() }),
    fn: ({ city }, context) => {
      context.state.set("last_city", city);
      if (!WEATHER[city]) throw new Error(`no station in ${city}`);
      return { city, weather: WEATHER[city] };
    },
  }),
  createTool({
    name: "web_search",
    description: "Searches the web.",
    schema: z.object({ query: z.string() }),
    fn: ({ query }) => ({ query, results: 3 }),
  }),
  createTool({
    name: "get_balance",
    description: "The balance of the account.",
    schema: z.object({}),
    fn: (_, context) => ({ balance: context.state.get("account_balance") }),
  }),
  createTool({
    name: "transfer",
    description: "Transfers money to somebody.",
    schema: z.object({ amount: z.number(), to: z.string() }),
    fn: ({ amount }, context) => {
      const balance = context.state.get("account_balance") ?? 0;
      if (amount > balance) throw new Error("insufficient funds");
      context.state.set("account_balance", balance - amount);
      return { left: balance - amount };
    },
  }),
  createTool({
    name: "who_am_i",
    description: "The user and the app of the session.",
    schema: z.object({}),
    fn: (_, context) => {
      const { userId, appName } = context._invocationContext?.session ?? context.invocationContext?.session;
      return { userId, appName };
    },
  }),
];

let coin = 0;

class Rules extends BaseLlm {
  protected async *generateContentAsyncImpl(request: LlmRequest) {
    yield new LlmResponse({
      content: { role: "model", parts: await this.parts(request) },
      usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 5 },
    });
  }

  async parts(request: LlmRequest): Promise<any[]> {
    const contents = request.contents;
    const last = contents.at(-1)?.parts ?? [];
    const results = last.flatMap((part) => part.functionResponse ?? []);
    const users = contents.filter((content) => content.role === "user" && content.parts?.some((part) => part.text));
    const question = (users.at(-1)?.parts ?? []).map((part) => part.text ?? "").join("");
    const call = (name: string, args: object = {}) => ({ functionCall: { name, args } });
    const say = (text: string) => [{ text }];
    if (results.length) return this.afterTools(question, results, contents, call, say);

    let match: RegExpMatchArray | null;
    if ((match = question.match(/weather in (.+) and (.+)\?/))) {
      return [call("get_weather", { city: match[1] }), call("get_weather", { city: match[2] })];
    }
    if ((match = question.match(/forecast for (\w+) for (\d+) days/))) {
      return [call("get_weather", { city: match[1], days: Number(match[2]) })];
    }
    if ((match = question.match(/detailed weather in (\w+)/))) {
      return [call("get_weather", { city: match[1], options: { units: "metric", parts: ["wind", "rain"] } })];
    }
    if ((match = question.match(/(?:weather in|What about) (.+)\?/))) return [call("get_weather", { city: match[1] })];
    if ((match = question.match(/[Ss]earch for (.+?)(?:, then .+)?$/))) return [call("web_search", { query: match[1] })];
    if ((match = question.match(/transfer (\d+) to (\w+)/i))) {
      return [call("transfer", { amount: Number(match[1]), to: match[2] })];
    }
    if (/look up my balance/i.test(question)) return [call("get_balance")];
    if (/account balance/i.test(question)) return say(`Your account balance is ${money(instruction(request, "balance"))}.`);
    if (/which city/i.test(question)) return say(`We talked about ${instruction(request, "city")}.`);
    if (/who am i/i.test(question)) return [call("who_am_i")];
    if (/how many messages/i.test(question)) return say(`You sent me ${users.length} messages.`);
    if (/be quiet/i.test(question)) return say("");
    if (/toss a coin/i.test(question)) return coin++ % 2 ? say("It is tails.") : [call("web_search", { query: "coin" })];
    if (/think first/i.test(question)) return [{ text: "They want an answer", thought: true }, { text: "I thought about it." }];
    if (/two parts/i.test(question)) return [{ text: "The weather" }, { text: "is sunny" }];
    if (/no such tool/i.test(question)) return [call("nonexistent", { a: 1 })];
    if (/lose the connection/i.test(question)) throw Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
    if (/run out of quota/i.test(question)) throw Object.assign(new Error("quota exceeded"), { status: 429 });
    if (/print something/i.test(question)) {
      console.log('{"text": "printed"}');
      process.stdout.write("printed without a line break");
      return say("I printed something.");
    }
    if (/take your time/i.test(question)) await new Promise((done) => setTimeout(done, 300));
    if (/a long story/i.test(question)) return say("word ".repeat(2000).trim());
    if ((match = question.match(/^Say: (.*)$/s))) return say(match[1]);
    return say("Hello! How can I help you today?");
  }

  afterTools(question: string, results: any[], contents: any[], call: any, say: any) {
    const calls = contents.flatMap((content) => content.parts ?? []).filter((part) => part.functionCall).length;
    if (/then look at London/.test(question) && results[0].name === "web_search") return [call("get_weather", { city: "London" })];
    if (/forever/.test(question) && calls < 5) return [call("web_search", { query: "again" })];
    const texts = results.map(({ name, response }) => {
      if (response.error) return `That did not work: ${response.error.split(": ").at(-1)}.`;
      if (name === "get_weather") return `The weather in ${response.city} is ${response.weather}.`;
      if (name === "web_search") return `I found ${response.results} results for ${response.query}.`;
      if (name === "get_balance") return `Your account balance is ${money(response.balance)}.`;
      if (name === "transfer") return `Done, ${money(response.left)} left.`;
      return `You are ${response.userId} in ${response.appName}.`;
    });
    return say(texts.join(" "));
  }
}

function instruction(request: LlmRequest, name: string): string {
  return String(request.config?.systemInstruction ?? "").match(new RegExp(`${name}=(\\S*);`))?.[1] ?? "unknown";
}

function money(amount: unknown): string {
  return amount === undefined || amount === "" ? "unknown" : `$${Number(amount).toLocaleString("en-US")}`;
}

export const agent = new LlmAgent({
  name: "assistant",
  description: "Answers by rules.",
  instruction: "You are an assistant. balance={account_balance?}; city={last_city?};",
  model: new Rules("rules"),
  tools,
});
