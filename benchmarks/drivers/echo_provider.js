// The agent that echoes, as promptfoo calls one.
module.exports = class {
  id() {
    return "echo";
  }

  async callApi(prompt) {
    return { output: prompt };
  }
};
